#include "kv/store/kv_store.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/check.h"

namespace gannet::kv {
namespace {

int64_t aligned(int64_t n) { return (n + 15) / 16 * 16; }

std::byte* reserve(int64_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // A step reads a few KiB here and there in every block: on small pages it would wait for translations. A hint.
  (void)::madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

KvLayout::KvLayout(const KvSpec& spec) {
  for (const PlaneSpec& plane : spec.planes) {
    GANNET_CHECK(spec.block_tokens % plane.tokens_per_row == 0, "block of {} tokens, {} a row", spec.block_tokens,
                 plane.tokens_per_row);
    PagedRows rows;
    rows.rows_per_block = spec.block_tokens / plane.tokens_per_row;
    rows.width = plane.width;
    rows.format = plane.format;
    rows.codes_offset = block_bytes;
    block_bytes += aligned(int64_t{rows.rows_per_block} * row_code_bytes(plane.format, plane.width));
    rows.scales_offset = block_bytes;
    block_bytes += aligned(int64_t{rows.rows_per_block} * row_scale_bytes(plane.format, plane.width));
    planes.push_back(rows);
  }
  for (PagedRows& rows : planes) rows.block_bytes = block_bytes;
  for (const RingSpec& ring : spec.rings) {
    RingRows rows;
    rows.capacity = ring.capacity;
    rows.width = ring.width;
    rows.format = ring.format;
    rows.tags_offset = slot_bytes;
    slot_bytes += aligned(int64_t{4} * ring.capacity);
    rows.codes_offset = slot_bytes;
    slot_bytes += aligned(int64_t{ring.capacity} * row_code_bytes(ring.format, ring.width));
    rows.scales_offset = slot_bytes;
    slot_bytes += aligned(int64_t{ring.capacity} * row_scale_bytes(ring.format, ring.width));
    rings.push_back(rows);
  }
  for (RingRows& rows : rings) rows.ring_bytes = slot_bytes;
}

Result<KvStore> KvStore::create(const KvSpec& spec, int32_t n_blocks, int32_t n_slots, Device* device) {
  KvStore store(spec);
  const int64_t block_total = store.layout_.block_bytes * n_blocks, slot_total = store.layout_.slot_bytes * n_slots;
  if (device != nullptr && block_total + slot_total + 512 > device->left_bytes())
    return Error{Errc::no_capacity,
                 fmt::format("the KV cache needs {} bytes of device memory ({} blocks of {} bytes, {} ring slots of {} "
                             "bytes), {} are left",
                             block_total + slot_total, n_blocks, store.layout_.block_bytes, n_slots,
                             store.layout_.slot_bytes, device->left_bytes())};
  store.device_ = device;
  store.blocks_ = device != nullptr ? device->allocate(block_total) : reserve(block_total);
  store.n_blocks_ = n_blocks;
  store.slots_ = device != nullptr ? device->allocate(slot_total) : reserve(slot_total);
  store.n_slots_ = n_slots;
  if ((block_total > 0 && store.blocks_ == nullptr) || (slot_total > 0 && store.slots_ == nullptr))
    return Error{Errc::no_capacity,
                 fmt::format("the system has no {} bytes for the KV cache ({} blocks of {} bytes, "
                             "{} ring slots of {} bytes)",
                             block_total + slot_total, n_blocks, store.layout_.block_bytes, n_slots,
                             store.layout_.slot_bytes)};
  for (int32_t slot = 0; slot < n_slots; ++slot) store.reset_slot(slot);
  return store;
}

KvStore::KvStore(KvStore&& other) noexcept
    : layout_(std::move(other.layout_)),
      n_blocks_(std::exchange(other.n_blocks_, 0)),
      n_slots_(std::exchange(other.n_slots_, 0)),
      blocks_(std::exchange(other.blocks_, nullptr)),
      slots_(std::exchange(other.slots_, nullptr)),
      device_(other.device_) {}

KvStore& KvStore::operator=(KvStore&& other) noexcept {
  std::swap(layout_, other.layout_);
  std::swap(n_blocks_, other.n_blocks_);
  std::swap(n_slots_, other.n_slots_);
  std::swap(blocks_, other.blocks_);
  std::swap(slots_, other.slots_);
  std::swap(device_, other.device_);
  return *this;
}

KvStore::~KvStore() {
  if (device_ != nullptr) return;
  if (blocks_ != nullptr) ::munmap(blocks_, static_cast<size_t>(layout_.block_bytes * n_blocks_));
  if (slots_ != nullptr) ::munmap(slots_, static_cast<size_t>(layout_.slot_bytes * n_slots_));
}

PagedRows KvStore::plane(int plane, const int32_t* block_table, int32_t max_blocks) const {
  PagedRows rows = layout_.planes[static_cast<size_t>(plane)];
  rows.base = blocks_;
  rows.block_table = block_table;
  rows.max_blocks = max_blocks;
  return rows;
}

RingRows KvStore::ring(int ring, const int32_t* ring_slot) const {
  RingRows rows = layout_.rings[static_cast<size_t>(ring)];
  rows.base = slots_;
  rows.ring_slot = ring_slot;
  return rows;
}

std::span<std::byte> KvStore::block_bytes(int32_t block) const {
  GANNET_CHECK(device_ == nullptr && block >= 0 && block < n_blocks_, "block {} of {}", block, n_blocks_);
  return {blocks_ + layout_.block_bytes * block, static_cast<size_t>(layout_.block_bytes)};
}

std::span<std::byte> KvStore::slot_bytes(int32_t slot) const {
  GANNET_CHECK(device_ == nullptr && slot >= 0 && slot < n_slots_, "slot {} of {}", slot, n_slots_);
  return {slots_ + layout_.slot_bytes * slot, static_cast<size_t>(layout_.slot_bytes)};
}

void KvStore::reset_slot(int32_t slot) {
  for (const RingRows& ring : layout_.rings) {
    std::byte* tags = slots_ + layout_.slot_bytes * slot + ring.tags_offset;
    if (device_ != nullptr)
      device_->fill(tags, 0xFF, int64_t{4} * ring.capacity);
    else
      std::memset(tags, 0xFF, static_cast<size_t>(ring.capacity) * 4);
  }
}

}  // namespace gannet::kv
