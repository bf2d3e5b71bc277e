// Picks K experts for every token and weighs them.
//
//   logits  f32 [T, E]     rows may be strided
//   bias    f32 [E]        added for the choice only, never to the weight; nullptr: none
//   bias_marked f32 [E]    the bias of rows whose row_flags have `flag` (image positions); nullptr: as bias
//   expert  i32 [T, K]     out: distinct, by falling biased score, ties to the lower id
//   weight  f32 [T, K]     out: unbiased score of the choice; with `normalise` and K > 1 divided by (their sum +
//   1e-20);
//                          times `scale`
//   score(z) = sqrt(softplus(z / temperature)), or sigmoid, or softmax over E; softplus(x) = max(x, 0) +
//   log1p(exp(-|x|))
//
// Error    expert exact where biased scores differ by more than 2^-20 relative; weight within 2^-20 relative.
// Refuses  at plan time: K < 1, K > E.
// Source   auxiliary-loss-free balancing (DeepSeek-V3 report, 2.1.2); sqrt(softplus) of DeepSeek-V4.
#pragma once

#include "kernels/variant.h"

namespace gannet {

enum class RouteScore : uint8_t { sqrt_softplus, softmax, sigmoid };

struct MoeRoute {
  int32_t experts = 0, chosen = 0;  // E, K
  RouteScore score = RouteScore::sqrt_softplus;
  bool normalise = true;
  float scale = 1, temperature = 1;
};

struct MoeRouteArgs {
  View logits;
  const float* bias = nullptr;
  const float* bias_marked = nullptr;
  const uint8_t* row_flags = nullptr;  // [T]; nullptr: no row is marked
  uint8_t flag = 0;
  int32_t* expert = nullptr;
  float* weight = nullptr;
};

using MoeRouteVariant = Variant<MoeRoute, MoeRouteArgs>;
std::span<const MoeRouteVariant> moe_route_ref();
Planned<MoeRoute, MoeRouteArgs> plan(const MoeRoute& op, const Machine& machine);

}  // namespace gannet
