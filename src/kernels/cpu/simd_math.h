// Functions over the 16-lane `Simd` of simd_avx2.h or simd_avx512.h; the same operations, so the same bits, on
// both.
#pragma once

namespace gannet::simd {

// e^x within 2 ulp; 0 below -87 (never a denormal), infinity above 88.37, NaN for NaN.
// x = n ln 2 + r with |r| <= 0.3466; the Taylor series of degree 7 leaves r^8 / 8! < 5.2e-9.
template <class S>
typename S::F exp(typename S::F x) {
  const auto bounded = S::min(S::set1(88.37f), S::max(S::set1(-87.0f), x));
  const auto n = S::round(S::mul(bounded, S::set1(1.44269504f)));  // -126 ... 127
  auto r = S::fma(n, S::set1(-0.693359375f), bounded);             // 355/512, so that the product is exact
  r = S::fma(n, S::set1(2.12194440e-4f), r);                       // and the rest of ln 2
  auto p = S::set1(1.0f / 5040);
  p = S::fma(p, r, S::set1(1.0f / 720));
  p = S::fma(p, r, S::set1(1.0f / 120));
  p = S::fma(p, r, S::set1(1.0f / 24));
  p = S::fma(p, r, S::set1(1.0f / 6));
  p = S::fma(p, r, S::set1(0.5f));
  p = S::fma(p, r, S::set1(1.0f));
  p = S::fma(p, r, S::set1(1.0f));
  const auto power = S::as_float(S::template shl<23>(S::addi(S::to_int(n), S::set1i(127))));
  const auto value = S::select(S::less(S::set1(88.37f), x), S::set1(__builtin_inff()), S::mul(p, power));
  return S::select(S::less(x, S::set1(-87.0f)), S::zero(), value);
}

}  // namespace gannet::simd
