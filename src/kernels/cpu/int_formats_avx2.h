// How a block of 32 columns of each GGUF format becomes 32 int16 weights in two registers, and its d and m; see
// int_linear.h. Included by int_linear_avx2.cc alone. A format is a struct with
//   kAffine                            it has an m
//   kParts                             blocks of 32 that share one super-block: 8 for K formats, else 1
//   kBytes                             of a super-block
//   weights(super, part, w)            the integers of one block
//   scales(rows, at, d, m)             d[part] and m[part]: lane n is output n, whose super-block begins at rows[n] + at
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace gannet {
namespace {

__m128i load16(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

int32_t word_at(const uint8_t* p) {
  int32_t word = 0;
  std::memcpy(&word, p, 4);
  return word;
}

// The 32-bit words at rows[n] + at. Every super-block is longer than the word that begins at its scale.
__m256i words_of(const uint8_t* const* rows, int64_t at) {
  return _mm256_setr_epi32(word_at(rows[0] + at), word_at(rows[1] + at), word_at(rows[2] + at),
                           word_at(rows[3] + at), word_at(rows[4] + at), word_at(rows[5] + at),
                           word_at(rows[6] + at), word_at(rows[7] + at));
}

// Halves in the lower 16 bits of each lane.
__m256 halves(__m256i words) {
  const __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xFFFF));
  return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}
__m256 upper_halves(__m256i words) { return halves(_mm256_srli_epi32(words, 16)); }

void transpose(__m256i r[8]) {
  __m256i a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = _mm256_unpacklo_epi64(a[i + j], a[i + j + 2]);
      b[i + 2 * j + 1] = _mm256_unpackhi_epi64(a[i + j], a[i + j + 2]);
    }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
    r[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
  }
}

void nibbles(const uint8_t* p, __m256i w[2]) {
  const __m256i pairs = _mm256_cvtepu8_epi16(load16(p));
  w[0] = _mm256_and_si256(pairs, _mm256_set1_epi16(15));
  w[1] = _mm256_srli_epi16(pairs, 4);
}

void less(__m256i w[2], int16_t zero) {
  w[0] = _mm256_sub_epi16(w[0], _mm256_set1_epi16(zero));
  w[1] = _mm256_sub_epi16(w[1], _mm256_set1_epi16(zero));
}

template <bool kMin>
struct Q4 {
  static constexpr bool kAffine = kMin;
  static constexpr int kParts = 1, kBytes = kMin ? 20 : 18;
  static void weights(const uint8_t* at, int, __m256i w[2]) {
    nibbles(at + (kMin ? 4 : 2), w);
    if constexpr (!kMin) less(w, 8);
  }
  static void scales(const uint8_t* const* rows, int64_t at, __m256* d, __m256* m) {
    const __m256i words = words_of(rows, at);
    d[0] = halves(words);
    if constexpr (kMin) m[0] = upper_halves(words);
  }
};

template <bool kMin>
struct Q5 {
  static constexpr bool kAffine = kMin;
  static constexpr int kParts = 1, kBytes = kMin ? 24 : 22;
  static void weights(const uint8_t* at, int, __m256i w[2]) {
    at += kMin ? 4 : 2;
    const int32_t high = word_at(at);
    nibbles(at + 4, w);
    const __m256i bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
                                          static_cast<int16_t>(0x8000));
    for (int i = 0; i < 2; ++i) {
      const __m256i all = _mm256_set1_epi16(static_cast<int16_t>(high >> (16 * i)));
      const __m256i is_set = _mm256_cmpeq_epi16(_mm256_and_si256(all, bit), bit);
      w[i] = _mm256_or_si256(w[i], _mm256_and_si256(is_set, _mm256_set1_epi16(16)));
    }
    if constexpr (!kMin) less(w, 16);
  }
  static void scales(const uint8_t* const* rows, int64_t at, __m256* d, __m256* m) { Q4<kMin>::scales(rows, at, d, m); }
};

struct Q8 {
  static constexpr bool kAffine = false;
  static constexpr int kParts = 1, kBytes = 34;
  static void weights(const uint8_t* at, int, __m256i w[2]) {
    w[0] = _mm256_cvtepi8_epi16(load16(at + 2));
    w[1] = _mm256_cvtepi8_epi16(load16(at + 18));
  }
  static void scales(const uint8_t* const* rows, int64_t at, __m256* d, __m256*) { d[0] = halves(words_of(rows, at)); }
};

struct Mxfp4 {
  static constexpr bool kAffine = false;
  static constexpr int kParts = 1, kBytes = 17;
  static void weights(const uint8_t* at, int, __m256i w[2]) {
    const __m128i twice = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    const __m128i pairs = load16(at + 1), low = _mm_set1_epi8(15);
    w[0] = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(twice, _mm_and_si128(pairs, low)));
    w[1] = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(twice, _mm_and_si128(_mm_srli_epi16(pairs, 4), low)));
  }
  // 2^(e - 128): exponents 0 and 1 are subnormal, 255 is NaN.
  static void scales(const uint8_t* const* rows, int64_t at, __m256* d, __m256*) {
    const __m256i e = _mm256_and_si256(words_of(rows, at), _mm256_set1_epi32(255));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    const __m256i is_tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    const __m256i is_nan = _mm256_cmpeq_epi32(e, _mm256_set1_epi32(255));
    const __m256i finite = _mm256_blendv_epi8(normal, tiny, is_tiny);
    d[0] = _mm256_castsi256_ps(_mm256_blendv_epi8(finite, _mm256_set1_epi32(0x7FC00000), is_nan));
  }
};

template <bool kFive>
struct Q45K {
  static constexpr bool kAffine = true;
  static constexpr int kParts = 8, kBytes = kFive ? 176 : 144;
  static void weights(const uint8_t* super, int part, __m256i w[2]) {
    const uint8_t* low = super + (kFive ? 48 : 16) + part / 2 * 32;
    const __m128i shift = _mm_cvtsi32_si128(part % 2 * 4);
    for (int i = 0; i < 2; ++i) {
      const __m256i pairs = _mm256_cvtepu8_epi16(load16(low + 16 * i));
      w[i] = _mm256_and_si256(_mm256_srl_epi16(pairs, shift), _mm256_set1_epi16(15));
      if constexpr (kFive) {
        const __m256i bits = _mm256_cvtepu8_epi16(load16(super + 16 + 16 * i));
        const __m256i high = _mm256_and_si256(_mm256_srl_epi16(bits, _mm_cvtsi32_si128(part)), _mm256_set1_epi16(1));
        w[i] = _mm256_or_si256(w[i], _mm256_slli_epi16(high, 4));
      }
    }
  }
  // The 6-bit numbers of one super-block: 8 scales, then 8 minima, a byte each.
  static __m128i unpack(const uint8_t* packed) {
    constexpr uint32_t kSix = 0x3F3F3F3F, kFour = 0x0F0F0F0F, kTwo = 0x03030303;
    const auto a = static_cast<uint32_t>(word_at(packed)), b = static_cast<uint32_t>(word_at(packed + 4)),
               c = static_cast<uint32_t>(word_at(packed + 8));
    return _mm_setr_epi32(static_cast<int>(a & kSix), static_cast<int>((c & kFour) | (a >> 6 & kTwo) << 4),
                          static_cast<int>(b & kSix), static_cast<int>((c >> 4 & kFour) | (b >> 6 & kTwo) << 4));
  }
  static void scales(const uint8_t* const* rows, int64_t at, __m256* d, __m256* m) {
    __m256i sc[8], mn[8];
    for (int n = 0; n < 8; ++n) {
      const __m128i both = unpack(rows[n] + at + 4);
      sc[n] = _mm256_cvtepu8_epi32(both);
      mn[n] = _mm256_cvtepu8_epi32(_mm_srli_si128(both, 8));
    }
    transpose(sc);
    transpose(mn);
    const __m256i words = words_of(rows, at);
    const __m256 scale = halves(words), least = upper_halves(words);
    for (int p = 0; p < 8; ++p) {
      d[p] = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(sc[p]));
      m[p] = _mm256_xor_ps(_mm256_mul_ps(least, _mm256_cvtepi32_ps(mn[p])), _mm256_set1_ps(-0.0f));
    }
  }
};

struct Q6K {
  static constexpr bool kAffine = false;
  static constexpr int kParts = 8, kBytes = 210;
  static void weights(const uint8_t* super, int part, __m256i w[2]) {
    const int group = part / 4, quarter = part % 4;
    const __m128i low_shift = _mm_cvtsi32_si128(quarter / 2 * 4), high_shift = _mm_cvtsi32_si128(2 * quarter);
    for (int i = 0; i < 2; ++i) {
      const __m256i pairs = _mm256_cvtepu8_epi16(load16(super + group * 64 + quarter % 2 * 32 + 16 * i));
      const __m256i fours = _mm256_cvtepu8_epi16(load16(super + 128 + group * 32 + 16 * i));
      const __m256i low = _mm256_and_si256(_mm256_srl_epi16(pairs, low_shift), _mm256_set1_epi16(15));
      const __m256i high = _mm256_and_si256(_mm256_srl_epi16(fours, high_shift), _mm256_set1_epi16(3));
      const __m256i code = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
      const auto scale = static_cast<int8_t>(super[192 + 2 * part + i]);
      w[i] = _mm256_mullo_epi16(_mm256_sub_epi16(code, _mm256_set1_epi16(32)), _mm256_set1_epi16(scale));
    }
  }
  static void scales(const uint8_t* const* rows, int64_t at, __m256* d, __m256*) {
    const __m256 all = halves(_mm256_srli_epi32(words_of(rows, at + 206), 16));
    for (int p = 0; p < 8; ++p) d[p] = all;
  }
};

}  // namespace
}  // namespace gannet
