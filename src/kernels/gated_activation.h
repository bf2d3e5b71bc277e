// The middle of a gated feed-forward: out = round( act(gate') * up' [* row_scale] ).
//
//   gate, up   f32 or bf16 [T, F]   rows may be strided: both may be columns of one product
//   row_scale  f32 [T] or nullptr   V4.1: the routing weight of the row
//   out        f32 or bf16 [T, F]   out: may be `gate` or `up` itself
//   limit > 0: gate' = min(gate, limit), up' = clamp(up, -limit, limit); else gate' = gate, up' = up
//   silu:      act(x) = x / (1 + exp(-x))
//   gelu_tanh: act(x) = x * (1 - 1 / (exp(2 z) + 1)), z = sqrt(2/pi) * (x + 0.044715 x^3)
//
// Error  within 1e-6 * |act(gate') * up' * row_scale| for silu, 1e-6 * |gate' * up' * row_scale| for gelu_tanh (its
//        subtraction cancels for large negative x), plus half an ulp of out's type. All fp32, products left to
//        right.
// Source Shazeer 2020 (GLU variants); Hendrycks and Gimpel 2016 (tanh form of GELU).
#pragma once

#include "kernels/variant.h"

namespace gannet {

enum class Activation : uint8_t { silu, gelu_tanh };

struct GatedActivation {
  Activation activation = Activation::silu;
  int32_t width = 0;
  float limit = 0;
  DType x = DType::f32, out = DType::f32;
};

struct GatedActivationArgs {
  View gate, up;
  const float* row_scale = nullptr;
  View out;
};

// Aborts unless the arguments have the shapes and types of `op`. Every variant begins with it.
void check_gated_activation(const GatedActivation& op, const GatedActivationArgs& args);

using GatedActivationVariant = Variant<GatedActivation, GatedActivationArgs>;
std::span<const GatedActivationVariant> gated_activation_cpu();
std::span<const GatedActivationVariant> gated_activation_cuda();
std::span<const GatedActivationVariant> gated_activation_ref();
Planned<GatedActivation, GatedActivationArgs> plan(const GatedActivation& op, const Machine& machine);

}  // namespace gannet
