#include "model/llama/ffn.h"

#include <fmt/format.h>

namespace gannet::llama {

Result<GatedMlp> GatedMlp::load(Loader& loader, const std::string& name, int32_t ffn, bool bias) {
  const Config& c = loader.config;
  GatedMlp m;
  GANNET_ASSIGN(m.gate_, Projection::load(loader, name + "gate_proj", ffn, c.hidden, bias));
  GANNET_ASSIGN(m.up_, Projection::load(loader, name + "up_proj", ffn, c.hidden, bias));
  GANNET_ASSIGN(m.down_, Projection::load(loader, name + "down_proj", c.hidden, ffn, bias));
  m.gate_up_ = JointProjection::of(loader, {&m.gate_, &m.up_});
  const auto activation =
      c.activation == Activation::silu ? gannet::Activation::silu : gannet::Activation::gelu_tanh;
  m.activation_ = plan(GatedActivation{activation, ffn}, loader.machine);
  return m;
}

void GatedMlp::forward(Pass& pass, View x, const float* row_scale, View y) const {
  const View gate = pass.tensor(x.dim(0), gate_.weight().out), up = pass.tensor(x.dim(0), up_.weight().out);
  gate_up_.forward(pass, x, {&gate_, &up_}, {gate, up});  // [T,F] each
  activation_({gate, up, row_scale, gate}, pass.exec);    // [T,F]
  down_.forward(pass, gate, y);                           // [T,C]
}

int64_t GatedMlp::workspace_bytes(int32_t rows, int32_t n_threads) const {
  int64_t op_bytes = 0;
  for (const Projection* p : {&gate_, &up_, &down_})
    op_bytes = std::max(op_bytes, p->workspace_bytes(rows, n_threads));
  return int64_t{rows} * gate_.weight().out * 2 * 4 + op_bytes + 4 * 64;
}

Result<Moe> Moe::load(Loader& loader, const std::string& name) {
  const Config& c = loader.config;
  Moe m;
  m.hidden_ = c.hidden;
  GANNET_ASSIGN(m.router_, Projection::load(loader, name + "gate", c.n_experts, c.hidden, false));
  MoeRoute op{c.n_experts, c.n_experts_per_token};
  op.score = RouteScore::softmax;
  op.normalise = c.norm_topk_prob;
  m.route_ = plan(op, loader.machine);
  for (int32_t e = 0; e < c.n_experts; ++e) {
    GANNET_ASSIGN(m.experts_.emplace_back(),
                  GatedMlp::load(loader, fmt::format("{}experts.{}.", name, e), c.expert_ffn, false));
  }
  return m;
}

void Moe::forward(Pass& pass, View x, View y) const {
  const auto E = static_cast<int32_t>(experts_.size());
  const int32_t K = route_.op.chosen;
  const int64_t T = x.dim(0);
  int32_t* expert = pass.exec.arena.array<int32_t>(T * K);
  float* weight = pass.exec.arena.array<float>(T * K);
  comm::LocalExperts local(E);

  const View logits = router_.forward(pass, x);  // [T,E]
  MoeRouteArgs route;
  route.logits = logits;
  route.expert = expert;
  route.weight = weight;
  route_(route, pass.exec);                                                       // [T,K]
  const comm::Dispatched rows = local.dispatch(x, expert, weight, K, pass.exec);  // [TK,C]
  const View results = pass.tensor(T * K, hidden_);                               // [TK,C]
  for (int32_t e = 0; e < E; ++e) {
    const int64_t begin = rows.offset[e], n = rows.offset[e + 1] - begin;
    if (n == 0) continue;
    const Arena::Scope scope(pass.exec.arena);
    experts_[static_cast<size_t>(e)].forward(pass, rows.x.rows(begin, n), rows.weight + begin,
                                             results.rows(begin, n));  // [n,C]
  }
  local.combine(rows, results, y, pass.exec);  // [T,C]
}

int64_t Moe::workspace_bytes(int32_t rows, int32_t n_threads) const {
  const int32_t K = route_.op.chosen;
  const comm::LocalExperts local(static_cast<int32_t>(experts_.size()));
  const int64_t route = int64_t{rows} * (8 * K + 4 * static_cast<int64_t>(experts_.size()));
  // Choices are distinct, so one expert has at most one row of a token.
  return route + router_.workspace_bytes(rows, n_threads) + local.workspace_bytes(rows, K, hidden_) +
         int64_t{rows} * K * hidden_ * 4 + experts_.front().workspace_bytes(rows, n_threads) + 8 * 64;
}

Result<FeedForward> FeedForward::load(Loader& loader, int32_t layer) {
  const Config& c = loader.config;
  const std::string name = fmt::format("model.layers.{}.mlp.", layer);
  FeedForward f;
  if (!c.is_moe.empty() && c.is_moe[static_cast<size_t>(layer)]) {
    GANNET_ASSIGN(f.net_, Moe::load(loader, name));
  } else {
    GANNET_ASSIGN(f.net_, GatedMlp::load(loader, name, c.ffn, c.mlp_bias));
  }
  return f;
}

View FeedForward::forward(Pass& pass, View x) const {
  const View y = pass.tensor(x.dim(0), x.dim(1));
  if (const auto* dense = std::get_if<GatedMlp>(&net_))
    dense->forward(pass, x, nullptr, y);
  else
    std::get<Moe>(net_).forward(pass, x, y);
  return y;
}

int64_t FeedForward::workspace_bytes(int32_t rows, int32_t n_threads) const {
  return std::visit([&](const auto& net) { return net.workspace_bytes(rows, n_threads); }, net_);
}

}  // namespace gannet::llama
