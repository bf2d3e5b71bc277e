#include "kernels/hyper_connection.h"

#include <algorithm>
#include <cmath>

#include "kernels/row_io.h"

namespace gannet {
namespace {

void check(int32_t streams, int32_t width, DType h) {
  GANNET_CHECK(streams >= 1 && streams <= 8, "{} streams", streams);
  GANNET_CHECK(width > 0 && is_activation(h), "width {}", width);
}

}  // namespace

Planned<HcMix, HcMixArgs> plan(const HcMix& op, const Machine& machine) {
  check(op.streams, op.width, op.h);
  return choose<HcMix, HcMixArgs>(op, machine, {hc_mix_cpu(), hc_mix_ref()});
}
Planned<HcCollapse, HcCollapseArgs> plan(const HcCollapse& op, const Machine& machine) {
  check(op.streams, op.width, op.h);
  return choose<HcCollapse, HcCollapseArgs>(op, machine, {hc_collapse_cpu(), hc_collapse_ref()});
}
Planned<HcExpand, HcExpandArgs> plan(const HcExpand& op, const Machine& machine) {
  check(op.streams, op.width, op.h);
  return choose<HcExpand, HcExpandArgs>(op, machine, {hc_expand_cpu(), hc_expand_ref()});
}
Planned<HcStart, HcStartArgs> plan(const HcStart& op, const Machine& machine) {
  check(op.streams, op.width, op.h);
  return choose<HcStart, HcStartArgs>(op, machine, {hc_start_ref()});
}
Planned<HcMean, HcMeanArgs> plan(const HcMean& op, const Machine& machine) {
  check(op.streams, op.width, op.h);
  return choose<HcMean, HcMeanArgs>(op, machine, {hc_mean_ref()});
}

namespace {

template <class T>
void row_step(int32_t n, T eps, T* c) {
  for (int32_t j = 0; j < n; ++j) {
    T sum = 0;
    for (int32_t k = 0; k < n; ++k) sum += c[j * n + k];
    for (int32_t k = 0; k < n; ++k) c[j * n + k] /= sum + eps;
  }
}

template <class T>
void column_step(int32_t n, T eps, T* c) {
  for (int32_t k = 0; k < n; ++k) {
    T sum = 0;
    for (int32_t j = 0; j < n; ++j) sum += c[j * n + k];
    for (int32_t j = 0; j < n; ++j) c[j * n + k] /= sum + eps;
  }
}

}  // namespace

template <class T>
void sinkhorn(const T* logits, int32_t streams, int32_t iters, T eps, T* comb) {
  const int32_t n = streams;
  for (int32_t j = 0; j < n; ++j) {
    const T top = *std::max_element(logits + j * n, logits + (j + 1) * n);
    T sum = 0;
    for (int32_t k = 0; k < n; ++k) sum += comb[j * n + k] = std::exp(logits[j * n + k] - top);
    for (int32_t k = 0; k < n; ++k) comb[j * n + k] = comb[j * n + k] / sum + eps;
  }
  column_step(n, eps, comb);
  for (int32_t i = 1; i < iters; ++i) {
    row_step(n, eps, comb);
    column_step(n, eps, comb);
  }
}
template void sinkhorn<float>(const float*, int32_t, int32_t, float, float*);
template void sinkhorn<double>(const double*, int32_t, int32_t, double, double*);

}  // namespace gannet
