// Activations as integers of 15 bits, one scale per 32 channels: the input of int_linear.
//
//   x      f32 [T, K]         K a multiple of 32; rows may be strided
//   q      i16 [T, K]         out: contiguous; |q| <= 16256 = 127 * 128, so q = 128 * hi + lo with two int8 limbs
//   scale  f32 [T, K/32]      out: contiguous
//   shift  f32 [T, K/32]      out: scale * sum of the block's q, rounded once (the sum is exact)
//   a = max |x| of the block;  scale = fl(a / 16256);  q = round to nearest even of fl(x * fl(16256 / a))
//   A block with a < 2^-110 counts as zeros: scale, shift and q are 0. One that holds an infinity or a NaN has
//   scale = shift = NaN and q = 0, so that what is computed from it is NaN.
//
// Error    |x - scale * q| <= a * (1/32512 + 2^-22), and a < 2^-110 where the block counts as zeros.
// Refuses  at plan time: K not a multiple of 32. Cannot fail at run time.
// Source   block quantisation as in ggml's Q8_0, with 15 bits in place of 8.
#pragma once

#include "kernels/variant.h"

namespace gannet {

constexpr int32_t kIntBlock = 32;
constexpr int32_t kIntMost = 127 * 128;
constexpr float kIntLeast = 0x1p-110f;

// Borrowed.
struct IntRowsView {
  int16_t* q = nullptr;
  float* scale = nullptr;
  float* shift = nullptr;
  int64_t n_rows = 0;
  int32_t width = 0;
};

// Rows in the arena of `exec`, contents undefined; and what they take there at most.
IntRowsView int_rows_in(Arena& arena, int64_t n_rows, int32_t width);
constexpr int64_t int_rows_bytes(int64_t n_rows, int32_t width) {
  return n_rows * (int64_t{width} * 2 + int64_t{width} / kIntBlock * 8) + 3 * 64;
}

struct IntRows {
  int32_t width = 0;
};

struct IntRowsArgs {
  View x;
  IntRowsView out;
};

// Aborts unless the arguments have the shapes of `op`. Every variant begins with it.
void check_int_rows(const IntRows& op, const IntRowsArgs& args);

using IntRowsVariant = Variant<IntRows, IntRowsArgs>;
std::span<const IntRowsVariant> int_rows_cpu();
std::span<const IntRowsVariant> int_rows_ref();
Planned<IntRows, IntRowsArgs> plan(const IntRows& op, const Machine& machine);

}  // namespace gannet
