// Eight floats of AVX2 behind the names that random.h's templates use. Only for *_avx2.cc.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <initializer_list>

namespace gannet::sample {

struct LanesAvx2 {
  static constexpr int n = 8;
  using F = __m256;
  using U = __m256i;
  static F set(float x) { return _mm256_set1_ps(x); }
  static U set_u(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static F load(const float* at) { return _mm256_loadu_ps(at); }
  static void store(float* at, F x) { _mm256_storeu_ps(at, x); }
  static U count_from(uint32_t x) { return add_u(set_u(x), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }  // b where either is NaN
  static U bits(F a) { return _mm256_castps_si256(a); }
  static F from_bits(U a) { return _mm256_castsi256_ps(a); }
  static U add_u(U a, U b) { return _mm256_add_epi32(a, b); }
  static U and_u(U a, U b) { return _mm256_and_si256(a, b); }
  static U xor_u(U a, U b) { return _mm256_xor_si256(a, b); }
  template <int bits>
  static U shift_left(U a) {
    return _mm256_slli_epi32(a, bits);
  }
  template <int bits>
  static U shift_right(U a) {
    return _mm256_srli_epi32(a, bits);
  }
  // Halves are exact, and the fused multiply-add rounds their sum once: the same as rounding the integer.
  static F from_unsigned(U a) {
    const F high = _mm256_cvtepi32_ps(_mm256_srli_epi32(a, 16)), low = _mm256_cvtepi32_ps(and_u(a, set_u(0xFFFF)));
    return fma(high, set(65536.0f), low);
  }
  static F from_signed(U a) { return _mm256_cvtepi32_ps(a); }
  static F pick_if_zero(U a, F zero, F other) {
    return _mm256_blendv_ps(other, zero, from_bits(_mm256_cmpeq_epi32(a, _mm256_setzero_si256())));
  }
  static void mul_wide(U a, uint32_t b, U& high, U& low) {
    const U even = _mm256_mul_epu32(a, set_u(b)), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), set_u(b));
    high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
    low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
  }
  // `fresh` and its index where fresh > best.
  static void keep_larger(F fresh, U index, F& best, U& best_index) {
    const F larger = _mm256_cmp_ps(fresh, best, _CMP_GT_OQ);
    best = _mm256_blendv_ps(best, fresh, larger);
    best_index = bits(_mm256_blendv_ps(from_bits(best_index), from_bits(index), larger));
  }
  static bool any_greater(F a, F b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0; }
  // Sums of mass_of() over the lanes, kept in four 64-bit lanes.
  using Mass = __m256i;
  static Mass no_mass() { return _mm256_setzero_si256(); }
  static Mass add_mass(Mass sum, F e) {
    const __m256d base = _mm256_set1_pd(4096.0);
    for (const __m128 half : {_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1)}) {
      const __m256i code = _mm256_castpd_si256(_mm256_add_pd(_mm256_cvtps_pd(half), base));
      sum = _mm256_add_epi64(sum, _mm256_sub_epi64(code, _mm256_castpd_si256(base)));
    }
    return sum;
  }
  static int64_t total(Mass sum) {
    alignas(32) int64_t part[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(part), sum);
    return part[0] + part[1] + part[2] + part[3];
  }
};

}  // namespace gannet::sample
