// Where and with what an op runs: the machine, the thread pool or the device's stream, and the workspace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/threads.h"
#include "tensor/view.h"

namespace gannet {

class Device;

// What variants of an op look at to say whether they fit. Fixed for the life of a process.
struct Machine {
  CpuFeatures cpu;
  Device* device = nullptr;  // where models run and their weights lie; nullptr: on the CPU
};
Machine this_machine(const std::string& isa_limit = "");

// Bump allocator over one reserved range: activations and workspaces of a step. Pages are committed when touched,
// so a generous reserve costs nothing until used. Owner: the engine thread. Running out is a planning bug and
// aborts.
class Arena {
 public:
  explicit Arena(int64_t reserve_bytes);
  Arena(std::byte* memory, int64_t bytes);  // borrowed, of the device that runs the step
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // 64-byte aligned, contents undefined.
  std::byte* allocate(int64_t bytes);
  template <class T>
  T* array(int64_t n) {
    return reinterpret_cast<T*>(allocate(n * static_cast<int64_t>(sizeof(T))));
  }
  View tensor(DType type, std::initializer_list<int64_t> shape);  // row-major contiguous

  int64_t used_bytes() const { return used_; }
  int64_t peak_bytes() const { return peak_; }

  // Everything allocated after the mark is released when the scope ends.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.used_) {}
    ~Scope() { arena_.used_ = mark_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    int64_t mark_;
  };

 private:
  std::byte* base_;
  int64_t reserve_;
  bool owns_ = true;
  int64_t used_ = 0, peak_ = 0;
};

struct Exec {
  ThreadPool& pool;
  Arena& arena;
  void* stream = nullptr;  // of Machine::device, see runtime/device.h; arena and arguments are then device memory
};

}  // namespace gannet
