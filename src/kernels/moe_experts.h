// Gated feed-forward experts over rows that are grouped by expert.
//
//   x        f32 or bf16 [N, C]   rows of expert e are [offset[e], offset[e + 1])
//   offset   i32 [E + 1]          rising, offset[0] = 0, offset[E] <= N; rows behind the last are left alone
//   weight   f32 [N] or nullptr   routing weight of each row, multiplied in before w2
//   experts  E weights w1 [F, C] (gate), w3 [F, C] (up), w2 [C, F]
//   out      x's type [N, C]
//   g = round(w1 q(x)), u = round(w3 q(x)), a = round(silu(min(g, limit)) * clamp(u, +-limit) * weight),
//   out = round(w2 q(a));  q = fp8 per 32 and back with `quantize_input` (quantize_rows.h), else nothing
//
// Sum      as linear.h; gated_activation.h.
// Refuses  what linear.h refuses.
// Source   DeepSeek-V4.1 experts (SwiGLU with clamps).
#pragma once

#include <span>

#include "kernels/gated_activation.h"
#include "kernels/linear.h"
#include "kernels/quantize_rows.h"
#include "kernels/variant.h"

namespace gannet {

struct ExpertWeights {
  WeightView w1, w3, w2;
};

struct MoeExperts {
  int32_t width = 0, ffn = 0;  // C, F
  float limit = 0;             // <= 0: no clamps
  bool quantize_input = false;
  WeightFormat format = WeightFormat::none;  // of all three
  DType x = DType::bf16;
};

struct MoeExpertsArgs {
  View x;
  const int32_t* offset = nullptr;
  const float* weight = nullptr;
  std::span<const ExpertWeights> experts;
  View out;
};

// A device runs the experts as one op, with `offset` and `weight` in its memory; each expert's matrices must be alike.
using MoeExpertsVariant = Variant<MoeExperts, MoeExpertsArgs>;
std::span<const MoeExpertsVariant> moe_experts_cuda();

// On the CPU made of finer ops, each planned for the machine.
struct MoeExpertsPlan {
  MoeExperts op;
  Planned<MoeExperts, MoeExpertsArgs> whole;  // of a device; then nothing else is planned
  Planned<QuantizeRows, QuantizeRowsArgs> quantize_x, quantize_a;
  Planned<Linear, LinearArgs> up, down;
  Planned<GatedActivation, GatedActivationArgs> activation;
  void operator()(const MoeExpertsArgs& args, Exec& exec) const;
};
MoeExpertsPlan plan(const MoeExperts& op, const Machine& machine);

// Workspace bytes for at most n rows.
int64_t moe_experts_workspace(const MoeExperts& op, int64_t n);

}  // namespace gannet
