// Matrix product with a weight as it lies in its file: y = x * W^T (+ bias).
//
//   x       f32 or bf16 [T, groups * in]   rows may be strided
//   weight  any WeightFormat [groups * out, in], see tensor/weight.h for the exact fp32 value of each element
//   bias    f32 [groups * out] or nullptr
//   y       f32 or bf16 [T, groups * out]  out: rows may be strided; must not overlap x
//   y[t, g*out + o] = round( sum_k x[t, g*in + k] * W[g*out + o, k] + bias[g*out + o] )
//
// Sum    every variant but the reference: fp32 in 16 lanes, lane j takes k = j, j+16, ... in rising order with one
//        fused multiply-add each, starting from 0; lanes are then added j+8, j+4, j+2, j+1 in that tree. So a row's
//        bits depend neither on T nor on threads nor on the instruction set. The reference sums in double.
// Error  |y - exact| <= (in/16 + 5) * 2^-24 * sum_k |x_k W_k| + half an ulp of y's type (bf16: of the rounded
// result). Refuses at plan time: in not a multiple of the format's block. Source y = xW^T with W stored [out, in],
// as every checkpoint here stores it.
#pragma once

#include "kernels/variant.h"
#include "tensor/weight.h"

namespace gannet {

struct Linear {
  WeightFormat format = WeightFormat::none;
  int32_t out = 0, in = 0;  // of one group
  int32_t groups = 1;
  DType x = DType::f32, y = DType::f32;
};

struct LinearArgs {
  View x;
  WeightView weight;
  const float* bias = nullptr;
  View y;
};

// Aborts unless the views have the shapes and types of `op`. Every variant begins with it.
void check_linear(const Linear& op, const LinearArgs& args);

// Arena bytes one call with `rows` rows needs at most.
int64_t linear_workspace_bytes(const Linear& op, int32_t rows, int32_t n_threads);

using LinearVariant = Variant<Linear, LinearArgs>;
std::span<const LinearVariant> linear_cpu();
std::span<const LinearVariant> linear_cuda();  // sums of their own: kernels/cuda/linear_cuda.h
std::span<const LinearVariant> linear_ref();
Planned<Linear, LinearArgs> plan(const Linear& op, const Machine& machine);

}  // namespace gannet
