// Sixteen fp32 lanes in two AVX2 registers. The counterpart of simd_avx512.h: every operation gives the same bits
// there, so a kernel written once over `Simd` is bit-equal on both.
//
// Only *_avx2.cc files may include this. Everything lies in a namespace of its own, and kernels over it are
// templates of `Simd`: no function here shares its symbol with code built for an older CPU.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace gannet::simd_avx2 {

struct Simd {
  struct F {
    __m256 lo, hi;
  };
  struct I {
    __m256i lo, hi;
  };
  using M = F;  // all ones or all zeros in each lane

  static constexpr int kTileRows = 2, kTileOuts = 2;  // accumulators of one product tile that fit the registers

  static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F set1(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static F load_n(const float* p, int n) {  // n in [0, 16]; other lanes 0
    const I m = head(n);
    return {_mm256_maskload_ps(p, m.lo), _mm256_maskload_ps(p + 8, m.hi)};
  }
  static void store(float* p, F a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
  }
  static void store_n(float* p, F a, int n) {
    const I m = head(n);
    _mm256_maskstore_ps(p, m.lo, a.lo);
    _mm256_maskstore_ps(p + 8, m.hi, a.hi);
  }

  static F add(F a, F b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
  static F sub(F a, F b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
  static F mul(F a, F b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
  static F div(F a, F b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
  static F sqrt(F a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
  static F fma(F a, F b, F c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
  // Where either is NaN, the second operand.
  static F min(F a, F b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
  static F max(F a, F b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
  static F round(F a) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
  }
  static M less(F a, F b) { return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)}; }
  static F select(M m, F yes, F no) {
    return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
  }

  static I to_int(F a) { return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)}; }
  static F to_float(I a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
  static F as_float(I a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
  static I as_int(F a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
  static I set1i(int a) { return {_mm256_set1_epi32(a), _mm256_set1_epi32(a)}; }
  static I addi(I a, I b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
  static I subi(I a, I b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
  static I andi(I a, I b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
  static I ori(I a, I b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
  template <int kBits>
  static I shl(I a) {
    return {_mm256_slli_epi32(a.lo, kBits), _mm256_slli_epi32(a.hi, kBits)};
  }
  template <int kBits>
  static I shr(I a) {
    return {_mm256_srli_epi32(a.lo, kBits), _mm256_srli_epi32(a.hi, kBits)};
  }  // zeros come in
  static I shr_by(I a, int bits) {
    const __m128i n = _mm_cvtsi32_si128(bits);
    return {_mm256_srl_epi32(a.lo, n), _mm256_srl_epi32(a.hi, n)};
  }
  static M equal(I a, I b) { return as_float({_mm256_cmpeq_epi32(a.lo, b.lo), _mm256_cmpeq_epi32(a.hi, b.hi)}); }

  // 16 bytes, widened.
  static I bytes(const uint8_t* p) { return {_mm256_cvtepu8_epi32(load8(p)), _mm256_cvtepu8_epi32(load8(p + 8))}; }
  static I signed_bytes(const uint8_t* p) {
    return {_mm256_cvtepi8_epi32(load8(p)), _mm256_cvtepi8_epi32(load8(p + 8))};
  }
  // The 32-bit words at base, base + stride, ...: n in [0, 16] of them, the other lanes 0.
  static I words(const uint8_t* base, int stride, int n) {
    if (n == 16) return {words8(base, stride), words8(base + 8 * stride, stride)};
    alignas(32) int word[16] = {};
    for (int i = 0; i < n; ++i) word[i] = load_int(base + i * stride);
    return {_mm256_load_si256(reinterpret_cast<const __m256i*>(word)),
            _mm256_load_si256(reinterpret_cast<const __m256i*>(word + 8))};
  }
  // The lower 16 bits of each lane as a half.
  static F half_words(I a) { return {_mm256_cvtph_ps(low_words(a.lo)), _mm256_cvtph_ps(low_words(a.hi))}; }
  static I bytes_n(const uint8_t* p, int n) {
    uint8_t all[16] = {};
    __builtin_memcpy(all, p, static_cast<unsigned>(n));
    return bytes(all);
  }
  // Bit i of the 16 at p in lane i, as 0 or 1.
  static I bits(const uint8_t* p) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), one = _mm256_set1_epi32(1);
    return {_mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(p[0]), lane), one),
            _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(p[1]), lane), one)};
  }
  // 8 bytes hold 16 nibbles, low one first; bits above the low 4 of a lane are undefined.
  static I nibble_pairs(const uint8_t* p) { return {interleave(load4(p)), interleave(load4(p + 4))}; }
  static F e2m1(I code) {  // the low 4 bits of each lane
    const __m256 magnitude = _mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6);
    const I sign = shl<28>(andi(code, set1i(8)));
    return {_mm256_or_ps(_mm256_permutevar8x32_ps(magnitude, code.lo), _mm256_castsi256_ps(sign.lo)),
            _mm256_or_ps(_mm256_permutevar8x32_ps(magnitude, code.hi), _mm256_castsi256_ps(sign.hi))};
  }
  // Element i of a 32-block is the low nibble of byte i, element i + 16 its high nibble.
  static void q4_affine(const uint8_t* p, float d, float m, F w[2]) {  // fl(fl(d * q) + m)
    const F step = set1(d), least = set1(m);
    const I pair = bytes(p);
    w[0] = add(mul(to_float(andi(pair, set1i(15))), step), least);
    w[1] = add(mul(to_float(shr<4>(pair)), step), least);
  }
  static void q4_centred(const uint8_t* p, float d, F w[2]) {  // fl(d * (q - 8))
    const I pair = bytes(p);
    w[0] = mul(to_float(subi(andi(pair, set1i(15)), set1i(8))), set1(d));
    w[1] = mul(to_float(subi(shr<4>(pair), set1i(8))), set1(d));
  }
  static void fp4_split(const uint8_t* p, float d, F w[2]) {  // e2m1(code) * d
    const I pair = bytes(p);
    w[0] = mul(e2m1(pair), set1(d));
    w[1] = mul(e2m1(shr<4>(pair)), set1(d));
  }

  static F from_f16(const uint16_t* p) { return {_mm256_cvtph_ps(load16(p)), _mm256_cvtph_ps(load16(p + 8))}; }
  static F from_f16_n(const uint16_t* p, int n) {
    uint16_t all[16] = {};
    __builtin_memcpy(all, p, static_cast<unsigned>(n) * 2);
    return from_f16(all);
  }
  static void to_f16_n(uint16_t* p, F a, int n) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    store16(p, _mm256_cvtps_ph(a.lo, kMode), _mm256_cvtps_ph(a.hi, kMode), n);
  }
  static F from_bf16(const uint16_t* p) { return {widen(load16(p)), widen(load16(p + 8))}; }
  static F from_bf16_n(const uint16_t* p, int n) {
    uint16_t all[16] = {};
    __builtin_memcpy(all, p, static_cast<unsigned>(n) * 2);
    return from_bf16(all);
  }
  static void to_bf16_n(uint16_t* p, F a, int n) { store16(p, narrow(a.lo), narrow(a.hi), n); }
  static F from_e4m3(const uint8_t* p) { return {e4m3(load8(p)), e4m3(load8(p + 8))}; }

  // Lane j + lane j+8, then j+4, j+2, j+1.
  static float sum(F a) { return sum8(_mm256_add_ps(a.lo, a.hi)); }
  static float max_lane(F a) {
    const __m256 eight = _mm256_max_ps(a.lo, a.hi);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  // sum() of each of four registers.
  static __m128 sum4(F a, F b, F c, F d) {
    const __m256 e = _mm256_add_ps(a.lo, a.hi), f = _mm256_add_ps(b.lo, b.hi);
    const __m256 g = _mm256_add_ps(c.lo, c.hi), h = _mm256_add_ps(d.lo, d.hi);
    const __m256 ef = _mm256_add_ps(_mm256_permute2f128_ps(e, f, 0x20), _mm256_permute2f128_ps(e, f, 0x31));
    const __m256 gh = _mm256_add_ps(_mm256_permute2f128_ps(g, h, 0x20), _mm256_permute2f128_ps(g, h, 0x31));
    const __m256 two =
        _mm256_add_ps(_mm256_shuffle_ps(ef, gh, 0x44), _mm256_shuffle_ps(ef, gh, 0xEE));  // e g | f h
    const __m256 one = _mm256_add_ps(two, _mm256_movehdup_ps(two));
    return _mm_unpacklo_ps(_mm_shuffle_ps(_mm256_castps256_ps128(one), _mm256_castps256_ps128(one), 0x08),
                           _mm_shuffle_ps(_mm256_extractf128_ps(one, 1), _mm256_extractf128_ps(one, 1), 0x08));
  }
  static __m128 mul4(__m128 a, float b) { return _mm_mul_ps(a, _mm_set1_ps(b)); }

 private:
  static I head(int n) {  // all ones in the first n lanes
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane), _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8), lane)};
  }
  static __m128i load8(const uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
  static __m128i load16(const uint16_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  static int load_int(const uint8_t* p) {
    int word;
    __builtin_memcpy(&word, p, 4);
    return word;
  }
  static __m256i words8(const uint8_t* p, int64_t stride) {
    return _mm256_setr_epi32(load_int(p), load_int(p + stride), load_int(p + 2 * stride), load_int(p + 3 * stride),
                             load_int(p + 4 * stride), load_int(p + 5 * stride), load_int(p + 6 * stride),
                             load_int(p + 7 * stride));
  }
  static __m128i low_words(__m256i a) {
    const __m256i low = _mm256_and_si256(a, _mm256_set1_epi32(0xFFFF));
    return _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  }
  static __m128i load4(const uint8_t* p) { return _mm_cvtsi32_si128(load_int(p)); }
  static __m256i interleave(__m128i pairs) {  // 4 bytes
    const __m256i wide = _mm256_cvtepu8_epi64(pairs);
    return _mm256_or_si256(wide, _mm256_slli_epi64(wide, 28));
  }
  static void store16(uint16_t* p, __m128i lo, __m128i hi, int n) {
    if (n == 16) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p), lo);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), hi);
      return;
    }
    uint16_t all[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(all), lo);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(all + 8), hi);
    __builtin_memcpy(p, all, static_cast<unsigned>(n) * 2);
  }
  static __m256 widen(__m128i a) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(a), 16)); }
  static __m128i narrow(__m256 a) {
    const __m256i u = _mm256_castps_si256(a);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(even, _mm256_set1_epi32(0x7FFF))), 16);
    const __m256i nan = _mm256_or_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i result = _mm256_blendv_epi8(rounded, nan, is_nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1));
  }
  // Through half precision, whose denormals cost nothing to convert: the code's exponent bias is 8 less.
  static __m256 e4m3(__m128i code) {
    const __m128i wide = _mm_cvtepi8_epi16(code);
    const __m128i low = _mm_set1_epi16(0x7F);
    const __m128i magnitude = _mm_and_si128(wide, low);
    const __m128i half = _mm_or_si128(_mm_slli_epi16(magnitude, 7),
                                      _mm_and_si128(wide, _mm_set1_epi16(static_cast<int16_t>(0x8000))));
    const __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256));
    const __m256i nan = _mm256_cvtepi16_epi32(_mm_cmpeq_epi16(magnitude, low));
    return _mm256_blendv_ps(value, _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000)), _mm256_castsi256_ps(nan));
  }
  static float sum8(__m256 a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
};

}  // namespace gannet::simd_avx2
