// The loops of row_kernels.h over `Simd`.
#pragma once

#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace gannet::simd {

template <class S>
typename S::F load_row(RowKernels::Row x, int64_t i, int n) {  // 0 < n <= 16; other lanes 0
  if (x.is_bf16) {
    const auto* p = static_cast<const uint16_t*>(x.data) + i;
    return n == 16 ? S::from_bf16(p) : S::from_bf16_n(p, n);
  }
  const auto* p = static_cast<const float*>(x.data) + i;
  return n == 16 ? S::load(p) : S::load_n(p, n);
}

template <class S>
void store_row(RowKernels::Out out, int64_t i, typename S::F v, int n) {
  if (out.is_bf16) return S::to_bf16_n(static_cast<uint16_t*>(out.data) + i, v, n);
  auto* p = static_cast<float*>(out.data) + i;
  if (n == 16)
    S::store(p, v);
  else
    S::store_n(p, v, n);
}

template <class S, class Body>  // body(first, count <= 16)
void for_lanes(int32_t n, const Body& body) {
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, 16);
  if (i < n) body(i, n - i);
}

template <class S>
void rms_norm_row(RowKernels::Row x, const float* weight, float offset, float eps, RowKernels::Out out, int32_t n) {
  auto squares = S::zero();
  for_lanes<S>(n, [&](int32_t i, int c) {
    const auto v = load_row<S>(x, i, c);
    squares = S::fma(v, v, squares);
  });
  const float mean = S::sum(squares) / static_cast<float>(n);
  const auto factor = S::div(S::set1(1.0f), S::sqrt(S::set1(mean + eps)));
  for_lanes<S>(n, [&](int32_t i, int c) {
    auto v = S::mul(load_row<S>(x, i, c), factor);
    if (weight != nullptr) {
      auto w = c == 16 ? S::load(weight + i) : S::load_n(weight + i, c);
      if (offset != 0) w = S::add(w, S::set1(offset));
      v = S::mul(w, v);
    }
    store_row<S>(out, i, v, c);
  });
}

template <class S>
typename S::F silu(typename S::F x) {
  return S::div(x, S::add(S::set1(1.0f), exp<S>(S::sub(S::zero(), x))));
}

template <class S>
typename S::F gelu_tanh(typename S::F x) {
  const auto cube = S::mul(S::mul(x, x), x);
  const auto twice_z = S::mul(S::set1(2 * 0.7978845608f), S::add(x, S::mul(S::set1(0.044715f), cube)));
  const auto rest = S::div(S::set1(1.0f), S::add(exp<S>(twice_z), S::set1(1.0f)));
  return S::mul(x, S::sub(S::set1(1.0f), rest));
}

template <class S>
void gated_row(RowKernels::Row gate, RowKernels::Row up, bool gelu, float limit, float scale, bool scaled,
               RowKernels::Out out, int32_t n) {
  for_lanes<S>(n, [&](int32_t i, int c) {
    auto g = load_row<S>(gate, i, c), u = load_row<S>(up, i, c);
    if (limit > 0) {
      g = S::min(S::set1(limit), g);  // a NaN stays one
      u = S::max(S::set1(-limit), S::min(S::set1(limit), u));
    }
    auto v = S::mul(gelu ? gelu_tanh<S>(g) : silu<S>(g), u);
    if (scaled) v = S::mul(v, S::set1(scale));
    store_row<S>(out, i, v, c);
  });
}

template <class S>
void add_row(RowKernels::Row a, RowKernels::Row b, RowKernels::Out out, int32_t n) {
  for_lanes<S>(
      n, [&](int32_t i, int c) { store_row<S>(out, i, S::add(load_row<S>(a, i, c), load_row<S>(b, i, c)), c); });
}

template <class S>
void scale_row(RowKernels::Row x, float factor, RowKernels::Out out, int32_t n) {
  for_lanes<S>(n,
               [&](int32_t i, int c) { store_row<S>(out, i, S::mul(load_row<S>(x, i, c), S::set1(factor)), c); });
}

template <class S>
void f16_row(RowKernels::Row x, uint16_t* out, int32_t n) {
  for_lanes<S>(n, [&](int32_t i, int c) { S::to_f16_n(out + i, load_row<S>(x, i, c), c); });
}

template <class S>
constexpr RowKernels kRowKernels = {rms_norm_row<S>, gated_row<S>, add_row<S>, scale_row<S>, f16_row<S>};

}  // namespace gannet::simd
