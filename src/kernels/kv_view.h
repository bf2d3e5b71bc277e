// KV storage as ops see it: plain structs, no calls. The paged cache fills them; a test fills them over contiguous
// memory with an identity block table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gannet {

// How one cached row of `width` channels is stored. Codes of a row and scales of a row lie in separate arrays.
enum class RowFormat : uint8_t {
  f32,        // 4 bytes a channel, no scales
  f16, bf16,  // 2 bytes a channel, no scales
  i32,        // 4 bytes a channel (token ids)
  fp8_ue8m0,  // e4m3, one ue8m0 scale per 32 channels  (V4.1 window rows: 512 + 16 bytes)
  fp4_ue8m0,  // e2m1 pairs, one ue8m0 scale per 32     (V4.1 index keys: 64 + 4 bytes)
  fp4_e4m3,   // e2m1 pairs, one e4m3 scale per 16      (V4.1 compressed rows: 256 + 32 bytes)
};
constexpr int32_t row_code_bytes(RowFormat format, int32_t width) {
  switch (format) {
    case RowFormat::f32: case RowFormat::i32: return 4 * width;
    case RowFormat::f16: case RowFormat::bf16: return 2 * width;
    case RowFormat::fp8_ue8m0: return width;
    default: return width / 2;
  }
}
constexpr int32_t row_scale_bytes(RowFormat format, int32_t width) {
  switch (format) {
    case RowFormat::fp8_ue8m0: case RowFormat::fp4_ue8m0: return width / 32;
    case RowFormat::fp4_e4m3: return width / 16;
    default: return 0;
  }
}

// Rows of one plane over the blocks of a pool. Row j of sequence s lies in block b = block_table[s * max_blocks +
// j / rows_per_block], at index i = j % rows_per_block:
//   codes  base + b * block_bytes + codes_offset  + i * row_code_bytes
//   scales base + b * block_bytes + scales_offset + i * row_scale_bytes
struct PagedRows {
  std::byte* base = nullptr;
  const int32_t* block_table = nullptr;   // [n_seqs, max_blocks]
  int32_t max_blocks = 0;
  int32_t rows_per_block = 0;
  int64_t block_bytes = 0;
  int64_t codes_offset = 0, scales_offset = 0;
  int32_t width = 0;
  RowFormat format = RowFormat::f32;
};

// The last `capacity` rows by position, one ring a sequence: position p lies in slot p % capacity, and tag[slot] == p
// says that it is there (a slot that never was written, or was overwritten, has another tag).
//   ring of sequence s: base + ring_slot[s] * ring_bytes; tags at +tags_offset (i32 [capacity]), then codes, then scales
struct RingRows {
  std::byte* base = nullptr;
  const int32_t* ring_slot = nullptr;     // [n_seqs]
  int64_t ring_bytes = 0;                 // distance between the slots of the slab
  int64_t tags_offset = 0, codes_offset = 0, scales_offset = 0;
  int32_t capacity = 0;
  int32_t width = 0;
  RowFormat format = RowFormat::f32;
};

}  // namespace gannet
