// The compressed cache of V4.1: one row for every `ratio` tokens, aligned to absolute positions.
//
// A row closes with the last token of its group: positions with (pos + 1) % ratio == 0. Ops that work on rows of
// the step do nothing useful for the others; their output rows are zeros and are never stored.
//
// GroupStart   out[t] = row_pos[t] - row_pos[t] % ratio: the position by which a compressed row is rotated
// PoolRows     w = softmax over the `ratio` tokens of gate, per channel;  out[t] = round( sum_i w_i * kv_i )
// AppendRows   the row of sequence row_seq[t] with number row_pos[t] / ratio: codes and scales into its plane
//
//   recent  f32 rows [kv | gate], width 2 W: of the step, and of earlier steps in the ring
//   x       f32 or bf16 [T, W];  out f32 or bf16 [T, W];  row_seq, row_pos i32 [T]
//
// Error    PoolRows: within half an ulp of out's type of the exact value, plus 2^-22 of sum |w_i kv_i|.
// Fails    a group whose earlier tokens are in neither place is a bug of the caller and aborts.
// Source   DeepSeek-V4.1 compressor; no overlap, no positional bias.
#pragma once

#include "kernels/variant.h"
#include "kernels/window.h"

namespace gannet {

struct GroupStart {
  int32_t ratio = 2;
};
struct GroupStartArgs {
  const int32_t* row_pos = nullptr;
  int32_t n = 0;
  int32_t* out = nullptr;  // [n]
};

struct PoolRows {
  int32_t width = 0, ratio = 2;
  DType out = DType::bf16;
};
struct PoolRowsArgs {
  RecentRows recent;
  const int32_t* row_seq = nullptr;
  const int32_t* row_pos = nullptr;
  View out;
};

struct AppendRows {
  int32_t width = 0, ratio = 2;
  RowFormat format = RowFormat::fp4_e4m3;
  DType x = DType::bf16;
};
struct AppendRowsArgs {
  View x;
  const int32_t* row_seq = nullptr;
  const int32_t* row_pos = nullptr;
  PagedRows plane;
};

// Where row `row` of sequence `seq` lies in a plane.
struct PagedRowBytes {
  std::byte* codes = nullptr;
  std::byte* scales = nullptr;
};
inline PagedRowBytes paged_row(const PagedRows& plane, int32_t seq, int32_t row) {
  const int32_t block = plane.block_table[int64_t{seq} * plane.max_blocks + row / plane.rows_per_block];
  std::byte* at = plane.base + block * plane.block_bytes;
  const int64_t i = row % plane.rows_per_block;
  return {at + plane.codes_offset + i * row_code_bytes(plane.format, plane.width),
          at + plane.scales_offset + i * row_scale_bytes(plane.format, plane.width)};
}

std::span<const Variant<GroupStart, GroupStartArgs>> group_start_ref();
std::span<const Variant<PoolRows, PoolRowsArgs>> pool_rows_ref();
std::span<const Variant<AppendRows, AppendRowsArgs>> append_rows_ref();

Planned<GroupStart, GroupStartArgs> plan(const GroupStart& op, const Machine& machine);
Planned<PoolRows, PoolRowsArgs> plan(const PoolRows& op, const Machine& machine);
Planned<AppendRows, AppendRowsArgs> plan(const AppendRows& op, const Machine& machine);

}  // namespace gannet
