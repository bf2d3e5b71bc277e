// The two CUDA forms of `linear`. Which one an op gets follows from its descriptor, so rows of one weight always
// sum in one order.
//   mma    tensor cores; x bf16, weights fp8_32x32, mxfp4_1x32 or bf16, whole tiles. |y - exact| <= (1.125 in + 8)
//   *
//          2^-23 * sum_k |x_k W_k| + half an ulp of y's type; bytes of the weight are the bound up to 64 rows.
//   lanes  any shape; f32, f16, bf16, fp8, mxfp4_1x32, q4_0, q4_1, q8_0: sums and bits of linear.h, those of the
//   CPU.
#pragma once

#include "kernels/linear.h"

namespace gannet::cuda {

bool linear_mma_fits(const Linear& op, const Machine& machine);
void linear_mma(const Linear& op, const LinearArgs& args, Exec& exec);
bool linear_lanes_fits(const Linear& op, const Machine& machine);
void linear_lanes(const Linear& op, const LinearArgs& args, Exec& exec);

}  // namespace gannet::cuda
