// Sixteen floats of AVX-512 behind the names that random.h's templates use. Only for *_avx512.cc.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <initializer_list>

namespace gannet::sample {

struct LanesAvx512 {
  static constexpr int n = 16;
  using F = __m512;
  using U = __m512i;
  static F set(float x) { return _mm512_set1_ps(x); }
  static U set_u(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static F load(const float* at) { return _mm512_loadu_ps(at); }
  static void store(float* at, F x) { _mm512_storeu_ps(at, x); }
  static U count_from(uint32_t x) {
    return add_u(set_u(x), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }  // b where either is NaN
  static U bits(F a) { return _mm512_castps_si512(a); }
  static F from_bits(U a) { return _mm512_castsi512_ps(a); }
  static U add_u(U a, U b) { return _mm512_add_epi32(a, b); }
  static U and_u(U a, U b) { return _mm512_and_si512(a, b); }
  static U xor_u(U a, U b) { return _mm512_xor_si512(a, b); }
  template <int bits>
  static U shift_left(U a) {
    return _mm512_slli_epi32(a, bits);
  }
  template <int bits>
  static U shift_right(U a) {
    return _mm512_srli_epi32(a, bits);
  }
  static F from_unsigned(U a) { return _mm512_cvtepu32_ps(a); }
  static F from_signed(U a) { return _mm512_cvtepi32_ps(a); }
  static F pick_if_zero(U a, F zero, F other) {
    return _mm512_mask_blend_ps(_mm512_testn_epi32_mask(a, a), other, zero);
  }
  static void mul_wide(U a, uint32_t b, U& high, U& low) {
    const U even = _mm512_mul_epu32(a, set_u(b)), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), set_u(b));
    high = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
    low = _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
  }
  // `fresh` and its index where fresh > best.
  static void keep_larger(F fresh, U index, F& best, U& best_index) {
    const __mmask16 larger = _mm512_cmp_ps_mask(fresh, best, _CMP_GT_OQ);
    best = _mm512_mask_blend_ps(larger, best, fresh);
    best_index = _mm512_mask_blend_epi32(larger, best_index, index);
  }
  static bool any_greater(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0; }
  // Sums of mass_of() over the lanes, kept in eight 64-bit lanes.
  using Mass = __m512i;
  static Mass no_mass() { return _mm512_setzero_si512(); }
  static Mass add_mass(Mass sum, F e) {
    const __m512d base = _mm512_set1_pd(4096.0);
    for (const __m256 half : {_mm512_castps512_ps256(e), _mm512_extractf32x8_ps(e, 1)}) {
      const __m512i code = _mm512_castpd_si512(_mm512_add_pd(_mm512_cvtps_pd(half), base));
      sum = _mm512_add_epi64(sum, _mm512_sub_epi64(code, _mm512_castpd_si512(base)));
    }
    return sum;
  }
  static int64_t total(Mass sum) {
    alignas(64) int64_t part[8];
    _mm512_store_si512(part, sum);
    int64_t whole = 0;
    for (const int64_t p : part) whole += p;
    return whole;
  }
};

}  // namespace gannet::sample
