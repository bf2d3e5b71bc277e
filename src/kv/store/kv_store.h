// Memory of a KV cache, on the CPU or on a device: a pool of equal blocks and a slab of ring slots, laid out from a KvSpec. Hands
// out the views that ops take. Which block or slot belongs to whom is decided elsewhere (kv/index, sched). Owner:
// the engine thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "kernels/kv_view.h"
#include "kv/store/kv_spec.h"
#include "runtime/device.h"

namespace gannet::kv {

// Offsets derived from a spec. A block holds, for each plane, all codes, then all scales, each 16-byte aligned; a
// ring slot holds, for each ring, tags, codes and scales likewise.
struct KvLayout {
  explicit KvLayout(const KvSpec& spec);
  int64_t block_bytes = 0, slot_bytes = 0;
  std::vector<PagedRows> planes;  // base and table unset
  std::vector<RingRows> rings;    // base and slots unset
};

class KvStore {
 public:
  // Reserves memory (on the CPU committed when touched; on a device taken from its reserve, for good). no_capacity when
  // there is too little.
  static Result<KvStore> create(const KvSpec& spec, int32_t n_blocks, int32_t n_slots, Device* device = nullptr);
  KvStore(KvStore&&) noexcept;
  KvStore& operator=(KvStore&&) noexcept;
  ~KvStore();

  const KvLayout& layout() const { return layout_; }
  int32_t n_blocks() const { return n_blocks_; }
  int32_t n_slots() const { return n_slots_; }

  PagedRows plane(int plane, const int32_t* block_table, int32_t max_blocks) const;
  RingRows ring(int ring, const int32_t* ring_slot) const;

  // Host stores only (a device's memory is not the caller's to touch).
  std::span<std::byte> block_bytes(int32_t block) const;  // everything a block holds
  std::span<std::byte> slot_bytes(int32_t slot) const;    // every ring of a sequence
  void reset_slot(int32_t slot);                          // all tags to -1: no row is there

 private:
  explicit KvStore(const KvSpec& spec) : layout_(spec) {}
  KvLayout layout_;
  int32_t n_blocks_ = 0, n_slots_ = 0;
  std::byte* blocks_ = nullptr;
  std::byte* slots_ = nullptr;
  Device* device_ = nullptr;  // owns the memory then
};

}  // namespace gannet::kv
