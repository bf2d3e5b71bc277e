// Mixture of experts of one layer: route, dispatch, routed experts, combine, shared expert.
#pragma once

#include "comm/expert_parallel.h"
#include "kernels/add.h"
#include "kernels/gated_activation.h"
#include "kernels/moe_experts.h"
#include "kernels/moe_route.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/context.h"
#include "model/deepseek_v41/weights.h"

namespace gannet::deepseek_v41 {

class Moe {
 public:
  // Borrows `experts`, which must hold all of this layer's routed experts between its ranks.
  Moe(const Config& config, int32_t layer, MoeWeights weights, comm::ExpertParallel& experts,
      const Precision& precision, const Machine& machine);

  View forward(StepContext& s, const View& x) const;  // [T, C] -> [T, C]

 private:
  View shared(StepContext& s, const View& x) const;

  int32_t layer_, chosen_;
  DType type_;
  MoeWeights w_;
  comm::ExpertParallel& parallel_;
  Projection gate_, w1_, w3_, w2_;
  Planned<MoeRoute, MoeRouteArgs> route_;
  MoeExpertsPlan experts_;
  Planned<GatedActivation, GatedActivationArgs> activation_;
  Planned<Add, AddArgs> add_;
};

}  // namespace gannet::deepseek_v41
