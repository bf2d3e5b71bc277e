// One accelerator: memory reserved at start, one stream of work, pinned staging, captured graphs. No CUDA type
// leaves runtime/cuda and kernels/cuda, so every file may include this one; a build without CUDA has no devices.
//
// Errors  opening returns a Result. A fault later (a failed launch, an illegal address) throws DeviceFault: the
//         step at hand has no result and the device is lost to this process.
// Owner   the engine thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/result.h"

namespace gannet {

struct DeviceInfo {
  std::string name;
  int32_t major = 0, minor = 0;  // compute capability
  int32_t multiprocessors = 0;
  int64_t memory_bytes = 0, free_bytes = 0, l2_bytes = 0;
};

// One sentence: the call, the runtime's own words, file and line.
class DeviceFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Recorded work, started again with one call. Arguments are those of the recording: what changes lies in memory.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void replay() = 0;  // on the device's stream
};

class Device {
 public:
  // Takes `reserve_bytes` of memory at once; 0: nine tenths of what is free. Fails with unsupported (built without
  // CUDA, no driver, an older device than compute capability 9.0) or no_capacity, with the values.
  static Result<std::unique_ptr<Device>> open(int32_t index, int64_t reserve_bytes);
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual void* stream() const = 0;  // a cudaStream_t

  // From the reserve, 256-byte aligned, until the device is closed. Running out is a planning bug and aborts.
  virtual std::byte* allocate(int64_t bytes) = 0;
  virtual int64_t left_bytes() const = 0;

  // In stream order. upload() copies through pinned staging, so `from` may be reused at once; download() waits.
  virtual void upload(void* to, const void* from, int64_t bytes) = 0;
  virtual void download(void* to, const void* from, int64_t bytes) = 0;
  virtual void fill(void* at, int byte, int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;  // both in device memory
  virtual void wait() = 0;                                           // for everything launched so far

  // Records what `work` launches on the stream; it must not allocate, upload or wait.
  virtual std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) = 0;

  // Microseconds that the device spent on what `work` launches, by events. Waits.
  virtual double time_us(const std::function<void()>& work) = 0;
};

}  // namespace gannet
