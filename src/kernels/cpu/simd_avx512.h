// Sixteen fp32 lanes in one AVX-512 register. The counterpart of simd_avx2.h: every operation gives the same bits
// there, so a kernel written once over `Simd` is bit-equal on both.
//
// Only *_avx512.cc files may include this. Everything lies in a namespace of its own, and kernels over it are
// templates of `Simd`: no function here shares its symbol with code built for an older CPU.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace gannet::simd_avx512 {

struct Simd {
  using F = __m512;   // 16 x f32
  using I = __m512i;  // 16 x i32
  using M = __mmask16;

  static constexpr int kTileRows = 6, kTileOuts = 4;  // accumulators of one product tile that fit the registers

  static __mmask16 head(int n) {
    return static_cast<__mmask16>((1u << n) - 1u);
  }  // the first n lanes, n in [0, 16]

  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float a) { return _mm512_set1_ps(a); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(head(n), p); }  // other lanes 0
  static void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  static void store_n(float* p, F a, int n) { _mm512_mask_storeu_ps(p, head(n), a); }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F sqrt(F a) { return _mm512_sqrt_ps(a); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }  // a * b + c, one rounding
  // Where either is NaN, the second operand.
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static M less(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static F select(M m, F yes, F no) { return _mm512_mask_blend_ps(m, no, yes); }

  static I to_int(F a) { return _mm512_cvtps_epi32(a); }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  static F as_float(I a) { return _mm512_castsi512_ps(a); }
  static I as_int(F a) { return _mm512_castps_si512(a); }
  static I set1i(int a) { return _mm512_set1_epi32(a); }
  static I addi(I a, I b) { return _mm512_add_epi32(a, b); }
  static I subi(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I andi(I a, I b) { return _mm512_and_si512(a, b); }
  static I ori(I a, I b) { return _mm512_or_si512(a, b); }
  template <int kBits>
  static I shl(I a) {
    return _mm512_slli_epi32(a, kBits);
  }
  template <int kBits>
  static I shr(I a) {
    return _mm512_srli_epi32(a, kBits);
  }  // zeros come in
  static I shr_by(I a, int bits) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(bits)); }
  static M equal(I a, I b) { return _mm512_cmpeq_epi32_mask(a, b); }

  // 16 bytes, widened.
  static I bytes(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I signed_bytes(const uint8_t* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // The 32-bit words at base, base + stride, ...: n in [0, 16] of them, the other lanes 0.
  static I words(const uint8_t* base, int stride, int n) {
    if (n <= 4) {  // a gather of few lanes costs as much as one of all
      const auto word = [&](int i) { return i < n ? load_int(base + i * stride) : 0; };
      return _mm512_zextsi128_si512(_mm_setr_epi32(word(0), word(1), word(2), word(3)));
    }
    const I lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), head(n), _mm512_mullo_epi32(lane, set1i(stride)),
                                       base, 1);
  }
  // The lower 16 bits of each lane as a half.
  static F half_words(I a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }
  static I bytes_n(const uint8_t* p, int n) { return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(head(n), p)); }
  // Bit i of the 16 at p in lane i, as 0 or 1.
  static I bits(const uint8_t* p) {
    uint16_t mask;
    __builtin_memcpy(&mask, p, 2);
    return _mm512_maskz_set1_epi32(mask, 1);
  }
  // 8 bytes hold 16 nibbles, low one first; bits above the low 4 of a lane are undefined.
  static I nibble_pairs(const uint8_t* p) {
    const __m512i wide = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    return _mm512_or_si512(wide, _mm512_slli_epi64(wide, 28));
  }
  static F e2m1(I code) {  // the low 4 bits of each lane
    return _mm512_permutexvar_ps(
        code, _mm512_setr_ps(0.0f, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6));
  }
  // Element i of a 32-block is the low nibble of byte i, element i + 16 its high nibble.
  static void q4_affine(const uint8_t* p, float d, float m, F w[2]) {  // fl(fl(d * q) + m)
    const F q = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const F table = add(mul(q, set1(d)), set1(m));
    const I pair = bytes(p);
    w[0] = _mm512_permutexvar_ps(pair, table);
    w[1] = _mm512_permutexvar_ps(shr<4>(pair), table);
  }
  static void q4_centred(const uint8_t* p, float d, F w[2]) {  // fl(d * (q - 8))
    const F q = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    const F table = mul(q, set1(d));
    const I pair = bytes(p);
    w[0] = _mm512_permutexvar_ps(pair, table);
    w[1] = _mm512_permutexvar_ps(shr<4>(pair), table);
  }
  static void fp4_split(const uint8_t* p, float d, F w[2]) {  // e2m1(code) * d
    const F q = _mm512_setr_ps(0.0f, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6);
    const F table = mul(q, set1(d));
    const I pair = bytes(p);
    w[0] = _mm512_permutexvar_ps(pair, table);
    w[1] = _mm512_permutexvar_ps(shr<4>(pair), table);
  }

  static F from_f16(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F from_f16_n(const uint16_t* p, int n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(head(n), p)); }
  static void to_f16_n(uint16_t* p, F a, int n) {
    _mm256_mask_storeu_epi16(p, head(n), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static F from_bf16(const uint16_t* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static F from_bf16_n(const uint16_t* p, int n) { return widen(_mm256_maskz_loadu_epi16(head(n), p)); }
  static void to_bf16_n(uint16_t* p, F a, int n) {
    const I u = as_int(a);
    const I even = andi(shr<16>(u), set1i(1));
    const I rounded = shr<16>(addi(u, addi(even, set1i(0x7FFF))));
    const I nan = ori(shr<16>(u), set1i(0x40));
    const M is_nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    _mm512_mask_cvtepi32_storeu_epi16(p, head(n), _mm512_mask_blend_epi32(is_nan, rounded, nan));
  }
  static F from_e4m3(const uint8_t* p) { return e4m3(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }

  // Lane j + lane j+8, then j+4, j+2, j+1.
  static float sum(F a) { return sum8(fold8(a)); }
  static float max_lane(F a) { return _mm512_reduce_max_ps(a); }
  // sum() of each of four registers.
  static __m128 sum4(F a, F b, F c, F d) {
    const __m256 e = fold8(a), f = fold8(b), g = fold8(c), h = fold8(d);
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
  static int load_int(const uint8_t* p) {
    int word;
    __builtin_memcpy(&word, p, 4);
    return word;
  }
  static F widen(__m256i a) { return as_float(shl<16>(_mm512_cvtepu16_epi32(a))); }
  // Through half precision, whose denormals cost nothing to convert: the code's exponent bias is 8 less.
  static F e4m3(__m128i code) {
    const __m256i wide = _mm256_cvtepi8_epi16(code);
    const __m256i low = _mm256_set1_epi16(0x7F);
    const __m256i magnitude = _mm256_and_si256(wide, low);
    const __mmask16 nan = _mm256_cmpeq_epi16_mask(magnitude, low);
    const __m256i half = _mm256_or_si256(_mm256_slli_epi16(magnitude, 7),
                                         _mm256_and_si256(wide, _mm256_set1_epi16(static_cast<int16_t>(0x8000))));
    const F value = mul(_mm512_cvtph_ps(half), set1(256));
    return _mm512_mask_blend_ps(nan, value, as_float(set1i(0x7FC00000)));
  }
  static __m256 fold8(F a) { return _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)); }
  static float sum8(__m256 a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
};

}  // namespace gannet::simd_avx512
