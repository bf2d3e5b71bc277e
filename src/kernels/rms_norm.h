// Root-mean-square norm of each row: out = round( w * x * (mean(x^2) + eps)^-1/2 ), statistics and product in fp32,
// one rounding at the end.
//
//   x    f32 or bf16 [T, C] or [T, H, C] (each head normed apart)   rows and heads may be strided
//   w    f32 [C], or nullptr for all ones; `weight_offset` is added to each (Gemma stores w - 1)
//   out  f32 or bf16, shape of x   may be x itself
//
// Sum    of squares: 16 fp32 lanes as in linear.h (fused multiply-add), then 1 / sqrt by IEEE division and square
// root. Error  <= (C/16 + 8) * 2^-24 relative, plus half an ulp of out's type. eps may be as small as 1e-20: a zero
// row gives zeros.
#pragma once

#include "kernels/variant.h"

namespace gannet {

struct RmsNorm {
  int32_t width = 0;
  float eps = 1e-6f;
  float weight_offset = 0;
  DType x = DType::f32, out = DType::f32;
};

struct RmsNormArgs {
  View x;
  const float* weight = nullptr;
  View out;
};

// Aborts unless the arguments have the shapes and types of `op`. Every variant begins with it.
void check_rms_norm(const RmsNorm& op, const RmsNormArgs& args);

using RmsNormVariant = Variant<RmsNorm, RmsNormArgs>;
std::span<const RmsNormVariant> rms_norm_cpu();
std::span<const RmsNormVariant> rms_norm_cuda();
std::span<const RmsNormVariant> rms_norm_ref();
Planned<RmsNorm, RmsNormArgs> plan(const RmsNorm& op, const Machine& machine);

}  // namespace gannet
