#include "model/deepseek_v41/hyper_connection.h"

#include <utility>

namespace gannet::deepseek_v41 {

HyperConnection::HyperConnection(const Config& c, SiteWeights weights, const Precision& precision,
                                 const Machine& machine)
    : w_(std::move(weights)), streams_(c.n_streams), type_(precision.activation()) {
  product_ = plan(Linear{w_.fn.format, w_.fn.out, w_.fn.in, 1, type_, DType::f32}, machine);
  mix_ = plan(HcMix{c.n_streams, c.hidden, c.sinkhorn_iters, static_cast<float>(c.hc_eps),
                    static_cast<float>(c.rms_eps), type_},
              machine);
  collapse_ = plan(HcCollapse{c.n_streams, c.hidden, type_}, machine);
  expand_ = plan(HcExpand{c.n_streams, c.hidden, type_}, machine);
  norm_ = Norm(w_.norm, c.rms_eps, precision, machine);
}

HyperConnection::Mix HyperConnection::mix(StepContext& s, const View& h, View pre) const {
  const int64_t T = h.dim(0), S = streams_;
  const View product = s.tensor(DType::f32, {T, w_.fn.out});  // [T, (2 + S) S]
  const Mix m{pre, s.tensor(DType::f32, {T, S}), s.tensor(DType::f32, {T, S, S})};
  product_({h.reshape({T, w_.fn.in}), w_.fn, nullptr, product}, s.exec);
  mix_({h, product, w_.scale.data(), w_.base.data(), m.pre, m.post, m.comb}, s.exec);
  return m;
}

View HyperConnection::collapse(StepContext& s, const View& h, const View& pre) const {
  const View x = s.tensor(type_, {h.dim(0), h.dim(2)});  // [T, C]
  collapse_({h, pre, x}, s.exec);
  return norm_(s, x);
}

void HyperConnection::expand(StepContext& s, const View& y, View h, const Mix& m) const {
  expand_({y, m.post, m.comb, h}, s.exec);
}

}  // namespace gannet::deepseek_v41
