#include "model/deepseek_v41/moe.h"

#include <algorithm>
#include <utility>

namespace gannet::deepseek_v41 {
namespace {

RouteScore route_score(ScoreFunction score) {
  switch (score) {
    case ScoreFunction::softmax:
      return RouteScore::softmax;
    case ScoreFunction::sigmoid:
      return RouteScore::sigmoid;
    case ScoreFunction::sqrt_softplus:
      break;
  }
  return RouteScore::sqrt_softplus;
}

}  // namespace

Moe::Moe(const Config& c, int32_t layer, MoeWeights weights, comm::ExpertParallel& experts,
         const Precision& precision, const Machine& machine)
    : layer_(layer),
      chosen_(c.n_experts_per_token),
      type_(precision.activation()),
      w_(std::move(weights)),
      parallel_(experts) {
  const float limit = std::max(0.0f, static_cast<float>(c.swiglu_limit));
  gate_ = Projection(w_.gate, DType::f32, precision, machine);
  route_ = plan(MoeRoute{c.n_experts, chosen_, route_score(c.score), c.norm_topk_prob,
                         static_cast<float>(c.routed_scaling), static_cast<float>(c.gate_temp)},
                machine);
  const WeightFormat format = w_.experts.front().w1.format;
  experts_ = plan(MoeExperts{c.hidden, c.ffn, limit, precision.quantizes_input(format), format, type_}, machine);
  w1_ = Projection(w_.shared.w1, type_, precision, machine);
  w3_ = Projection(w_.shared.w3, type_, precision, machine);
  w2_ = Projection(w_.shared.w2, type_, precision, machine);
  activation_ = plan(GatedActivation{Activation::silu, c.ffn, limit, type_, type_}, machine);
  add_ = plan(Add{c.hidden, DType::f32, type_, type_}, machine);
}

View Moe::shared(StepContext& s, const View& x) const {
  const View gate = w1_(s, x);  // [T, F]
  const View up = w3_(s, x);    // [T, F]
  activation_({gate, up, nullptr, gate}, s.exec);
  return w2_(s, gate);  // [T, C]
}

View Moe::forward(StepContext& s, const View& x) const {
  const int64_t T = x.dim(0), C = x.dim(1);
  const View y = s.tensor(type_, {T, C});
  const Arena::Scope scope(s.exec.arena);
  const View logits = gate_(s, x);  // f32 [T, E]
  int32_t* expert = s.exec.arena.array<int32_t>(T * chosen_);
  float* weight = s.exec.arena.array<float>(T * chosen_);
  route_({logits, w_.bias.data(), w_.bias_image.empty() ? nullptr : w_.bias_image.data(), s.rows.flags,
          row_is_image, expert, weight},
         s.exec);
  s.show(layer_, "route_logits", logits);
  s.show(layer_, "route_experts", View(expert, DType::i32, {T, chosen_}));
  s.show(layer_, "route_weights", View(weight, DType::f32, {T, chosen_}));

  const comm::Dispatched sent = parallel_.dispatch(x, expert, weight, chosen_, s.exec);  // [T K, C]
  const View results = s.tensor(type_, {sent.x.dim(0), C});
  experts_({sent.x, sent.offset, sent.weight, w_.experts, results}, s.exec);  // [T K, C]
  const View routed = s.tensor(DType::f32, {T, C});
  parallel_.combine(sent, results, routed, s.exec);  // f32 [T, C]
  add_({routed, shared(s, x), y}, s.exec);           // [T, C]
  s.show(layer_, "moe", y);
  return y;
}

}  // namespace gannet::deepseek_v41
