// The second half of a layer: a gated feed-forward network, or a mixture of them.
#pragma once

#include <variant>
#include <vector>

#include "base/result.h"
#include "comm/local/local_experts.h"
#include "kernels/gated_activation.h"
#include "kernels/moe_route.h"
#include "model/llama/parts.h"

namespace gannet::llama {

// down(act(gate(x)) * up(x))
class GatedMlp {
 public:
  // `name` ends in "."; the weights are name + gate_proj, up_proj, down_proj.
  static Result<GatedMlp> load(Loader& loader, const std::string& name, int32_t ffn, bool bias);
  // [T,C] -> [T,C]; row_scale f32 [T] or nullptr multiplies the activations of a row.
  void forward(Pass& pass, View x, const float* row_scale, View y) const;
  int64_t workspace_bytes(int32_t rows, int32_t n_threads) const;

 private:
  Projection gate_, up_, down_;
  JointProjection gate_up_;
  Planned<GatedActivation, GatedActivationArgs> activation_;
};

// Router: softmax over all experts, the K largest, divided by their sum where the config says so. Results are
// summed in rising expert id.
class Moe {
 public:
  static Result<Moe> load(Loader& loader, const std::string& name);
  void forward(Pass& pass, View x, View y) const;  // [T,C] -> [T,C]
  int64_t workspace_bytes(int32_t rows, int32_t n_threads) const;

 private:
  Projection router_;
  Planned<MoeRoute, MoeRouteArgs> route_;
  std::vector<GatedMlp> experts_;  // [E]
  int32_t hidden_ = 0;
};

class FeedForward {
 public:
  static Result<FeedForward> load(Loader& loader, int32_t layer);
  View forward(Pass& pass, View x) const;  // [T,C] -> [T,C]
  int64_t workspace_bytes(int32_t rows, int32_t n_threads) const;

 private:
  std::variant<GatedMlp, Moe> net_;
};

}  // namespace gannet::llama
