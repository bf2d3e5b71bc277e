// Contiguous cache rows for tests of V4.1's ops: sequences with rings, step rows and pages in shuffled blocks.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/compressor.h"
#include "kernels/row_codec.h"
#include "kernels/window.h"
#include "support/kernels.h"

namespace gannet::test {

// Rows of `n_seqs` sequences in pages of `per_block` rows, block order shuffled.
struct Pages {
  std::vector<std::byte> memory;
  std::vector<int32_t> table;
  PagedRows rows;
  Pages(RowFormat format, int32_t width, int32_t n_seqs, int32_t max_rows, int32_t per_block, Random& random) {
    rows.max_blocks = (max_rows + per_block - 1) / per_block;
    rows.rows_per_block = per_block;
    rows.width = width;
    rows.format = format;
    rows.scales_offset = int64_t{per_block} * row_code_bytes(format, width);
    rows.block_bytes = rows.scales_offset + int64_t{per_block} * row_scale_bytes(format, width) + 16;
    const int32_t n = n_seqs * rows.max_blocks;
    memory.assign(static_cast<size_t>(n * rows.block_bytes), std::byte{0xFF});
    table.resize(static_cast<size_t>(n));
    std::iota(table.begin(), table.end(), 0);
    for (size_t i = table.size(); i > 1; --i)
      std::swap(table[i - 1], table[static_cast<size_t>(random.below(static_cast<int32_t>(i)))]);
    rows.base = memory.data();
    rows.block_table = table.data();
  }
  void put(int32_t seq, int32_t row, const std::vector<float>& values) {
    const PagedRowBytes to = paged_row(rows, seq, row);
    encode_row(rows.format, values.data(), rows.width, to.codes, to.scales);
  }
  std::vector<float> get(int32_t seq, int32_t row) const {
    std::vector<float> out(static_cast<size_t>(rows.width));
    const PagedRowBytes from = paged_row(rows, seq, row);
    decode_row(rows.format, from.codes, from.scales, rows.width, out.data());
    return out;
  }
};

// One ring a sequence.
struct Rings {
  std::vector<std::byte> memory;
  std::vector<int32_t> slot;
  RingRows rows;
  Rings(RowFormat format, int32_t width, int32_t n_seqs, int32_t capacity) {
    rows.capacity = capacity;
    rows.width = width;
    rows.format = format;
    rows.codes_offset = int64_t{4} * capacity;
    rows.scales_offset = rows.codes_offset + int64_t{capacity} * row_code_bytes(format, width);
    rows.ring_bytes = rows.scales_offset + int64_t{capacity} * row_scale_bytes(format, width);
    memory.assign(static_cast<size_t>(rows.ring_bytes * n_seqs), std::byte{0xFF});  // tags -1
    for (int32_t s = 0; s < n_seqs; ++s) slot.push_back(n_seqs - 1 - s);
    rows.base = memory.data();
    rows.ring_slot = slot.data();
  }
  int32_t tag(int32_t seq, int32_t i) const {
    int32_t value;
    std::memcpy(&value, rows.base + slot[static_cast<size_t>(seq)] * rows.ring_bytes + 4 * i, 4);
    return value;
  }
};

}  // namespace gannet::test
