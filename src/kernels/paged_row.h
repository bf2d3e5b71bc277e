// Where a row of a paged plane lies. Included by code for every CPU alone, never by *_avx*.cc.
#pragma once

#include "base/check.h"
#include "kernels/kv_view.h"

namespace gannet {

// Codes of row `row` of sequence `seq`.
inline std::byte* paged_row(const PagedRows& plane, int32_t seq, int32_t row) {
  const int32_t slot = row / plane.rows_per_block;
  GANNET_CHECK(row >= 0 && slot < plane.max_blocks, "row {} beyond {} blocks of {}", row, plane.max_blocks,
               plane.rows_per_block);
  const int64_t block = plane.block_table[int64_t{seq} * plane.max_blocks + slot];
  return plane.base + block * plane.block_bytes + plane.codes_offset +
         int64_t{row % plane.rows_per_block} * row_code_bytes(plane.format, plane.width);
}

}  // namespace gannet
