// Products of integer activations with integer weights as they lie in a GGUF file: y = x * W^T (+ bias), for up to
// three weights that share their input (q, k and v; gate and up), in one pass over the threads.
//
//   x       IntRowsView [T, in]    see int_rows.h
//   weight  [out, in] in a format that int_linear_takes(): one that is, per block of 32 columns,
//           W = d * w (+ m) with integers w, |w| <= 4096, and fp32 numbers d and m
//   bias    f32 [out] or nullptr
//   y       f32 [T, out]           out: rows may be strided
//   y[t, o] = sum_b ( d * scale * I_b  +  m * shift_b ) + bias,   I_b = sum of w * q over block b
//
// Block    d and m of each format, fp32 with the roundings of tensor/weight.h; w as stored unless said otherwise:
//          q4_0 w-8 | q4_1 m=m | q5_0 w-16 | q5_1 m=m | q8_0 | mxfp4_gguf w = 2 * e2m1, d = 2^(e-128) |
//          q4_k q5_k d = fl(d * sc), m = -fl(dmin * mn) | q6_k w = (code - 32) * sc of its 16 columns, d = d
// Sum      I_b is exact: |I_b| <= 32 * 4096 * 16256 < 2^31. Then one fp32 accumulator an output, from 0, over the
//          blocks in rising order: acc = fma(float(I_b), fl(d * scale), acc), and where the format has an m
//          acc = fma(m, shift, acc). Bias last. So a row's bits depend on nothing but the row, on any machine: no
//          order of lanes enters. The reference sums in double.
// Error    against exact arithmetic on x as quantised: (2 * in/32 + 4) * 2^-24 * sum_b (|d scale I_b| + |m shift|).
//          Against exact arithmetic on fp32 x and fp32 W besides: docs/numerics.md, "Integer products".
// Refuses  at plan time: formats that int_linear_takes() does not; in not a multiple of 32 (K formats: of 256).
#pragma once

#include "kernels/int_rows.h"
#include "tensor/weight.h"

namespace gannet {

constexpr int kIntParts = 3;

bool int_linear_takes(WeightFormat format);

struct IntLinear {
  int32_t in = 0;
  int32_t n_parts = 0;
  struct Part {
    WeightFormat format = WeightFormat::none;
    int32_t out = 0;
  } part[kIntParts];
};

struct IntLinearArgs {
  IntRowsView x;
  struct Part {
    WeightView weight;
    const float* bias = nullptr;
    View y;
  } part[kIntParts];
};

// Aborts unless the arguments have the shapes and types of `op`. Every variant begins with it.
void check_int_linear(const IntLinear& op, const IntLinearArgs& args);

// Arena bytes one call needs at most.
int64_t int_linear_workspace_bytes(const IntLinear& op, int32_t n_threads);

using IntLinearVariant = Variant<IntLinear, IntLinearArgs>;
std::span<const IntLinearVariant> int_linear_cpu();
std::span<const IntLinearVariant> int_linear_ref();
Planned<IntLinear, IntLinearArgs> plan(const IntLinear& op, const Machine& machine);

}  // namespace gannet
