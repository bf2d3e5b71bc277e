// How 32 columns of each weight format become 32 fp32 values in registers. A format is a struct over `Simd` with
//   kScales                                          fp32 scale values for each 32 columns
//   scales(codes, scale_row, first, n, out)          those of 32-column blocks [first, first + n); writes up to 15
//   more block(codes, b, sc, w)                           block b of the row, given its own scales tail(codes,
//   begin, n, w)                         fewer than 32 columns; only where a row may end so (kDense)
// The values are those of dequantize() in tensor/weight.h, with the same roundings.
#pragma once

#include <cstdint>

namespace gannet::simd {

constexpr int kChunkBlocks = 64;           // blocks whose scales are prepared at once: 2048 columns
constexpr int kPlane = kChunkBlocks + 16;  // scale values of one kind, with room for a last whole vector

// Halves at the start of each block of `kBytes`: field f of block `first + i` to out[f * kPlane + i].
template <class S, int kFields, int kBytes>
void half_scales(const uint8_t* codes, int first, int n, float* out) {
  const uint8_t* at = codes + int64_t{first} * kBytes;
  for (int i = 0; i < n; i += 16, at += 16 * kBytes) {
    const auto words = S::words(at, kBytes, n - i < 16 ? n - i : 16);
    S::store(out + i, S::half_words(words));
    if constexpr (kFields == 2) S::store(out + kPlane + i, S::half_words(S::template shr<16>(words)));
  }
}

// 2^(e - 127); 2^-127 is subnormal, 255 is NaN.
template <class S>
typename S::F powers(typename S::I e) {
  const auto value = S::as_float(S::template shl<23>(e));
  const auto low = S::select(S::equal(e, S::set1i(0)), S::as_float(S::set1i(0x00400000)), value);
  return S::select(S::equal(e, S::set1i(255)), S::as_float(S::set1i(0x7FC00000)), low);
}

template <class S>
void power_scales(const uint8_t* scale_row, int first, int n, float* out) {
  const uint8_t* at = scale_row + first;
  int i = 0;
  for (; i + 16 <= n; i += 16) S::store(out + i, powers<S>(S::bytes(at + i)));
  if (i < n) S::store(out + i, powers<S>(S::bytes_n(at + i, n - i)));
}

template <class S>
struct DenseF32 {
  using F = typename S::F;
  static constexpr int kScales = 0;
  static constexpr int kFetch = 128;
  static constexpr bool kDense = true;
  static void scales(const uint8_t*, const uint8_t*, int, int, float*) {}
  static const float* at(const uint8_t* codes, int64_t k) { return reinterpret_cast<const float*>(codes) + k; }
  static void block(const uint8_t* codes, int b, const float*, F w[2]) {
    w[0] = S::load(at(codes, int64_t{b} * 32));
    w[1] = S::load(at(codes, int64_t{b} * 32 + 16));
  }
  static void tail(const uint8_t* codes, int begin, int n, F w[2]) {
    w[0] = S::load_n(at(codes, begin), n < 16 ? n : 16);
    w[1] = n > 16 ? S::load_n(at(codes, begin + 16), n - 16) : S::zero();
  }
};

template <class S, bool kHalf>
struct Dense16 {
  using F = typename S::F;
  static constexpr int kScales = 0;
  static constexpr int kFetch = 64;
  static constexpr bool kDense = true;
  static void scales(const uint8_t*, const uint8_t*, int, int, float*) {}
  static const uint16_t* at(const uint8_t* codes, int64_t k) {
    return reinterpret_cast<const uint16_t*>(codes) + k;
  }
  static F some(const uint16_t* p, int n) {
    if constexpr (kHalf)
      return S::from_f16_n(p, n);
    else
      return S::from_bf16_n(p, n);
  }
  static F all(const uint16_t* p) {
    if constexpr (kHalf)
      return S::from_f16(p);
    else
      return S::from_bf16(p);
  }
  static void block(const uint8_t* codes, int b, const float*, F w[2]) {
    w[0] = all(at(codes, int64_t{b} * 32));
    w[1] = all(at(codes, int64_t{b} * 32 + 16));
  }
  static void tail(const uint8_t* codes, int begin, int n, F w[2]) {
    w[0] = some(at(codes, begin), n < 16 ? n : 16);
    w[1] = n > 16 ? some(at(codes, begin + 16), n - 16) : S::zero();
  }
};

// e4m3 codes, one power of two per 32 columns.
template <class S>
struct Fp8 {
  using F = typename S::F;
  static constexpr int kScales = 1;
  static constexpr int kFetch = 32;
  static constexpr bool kDense = false;
  static void scales(const uint8_t*, const uint8_t* scale_row, int first, int n, float* out) {
    power_scales<S>(scale_row, first, n, out);
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    const F scale = S::set1(sc[0]);
    w[0] = S::mul(S::from_e4m3(codes + int64_t{b} * 32), scale);
    w[1] = S::mul(S::from_e4m3(codes + int64_t{b} * 32 + 16), scale);
  }
};

// e2m1 pairs, low nibble first, one power of two per 32 columns.
template <class S>
struct Mxfp4 {
  using F = typename S::F;
  static constexpr int kScales = 1;
  static constexpr int kFetch = 16;
  static constexpr bool kDense = false;
  static void scales(const uint8_t*, const uint8_t* scale_row, int first, int n, float* out) {
    power_scales<S>(scale_row, first, n, out);
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    const F scale = S::set1(sc[0]);
    w[0] = S::mul(S::e2m1(S::nibble_pairs(codes + int64_t{b} * 16)), scale);
    w[1] = S::mul(S::e2m1(S::nibble_pairs(codes + int64_t{b} * 16 + 8)), scale);
  }
};

// ggml: scale byte, then pairs whose low nibble is element i and whose high one is element i + 16.
template <class S>
struct Mxfp4Gguf {
  using F = typename S::F;
  static constexpr int kScales = 1;
  static constexpr int kFetch = 17;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    const uint8_t* at = codes + int64_t{first} * 17;
    for (int i = 0; i < n; i += 16, at += 16 * 17) {
      const auto words = S::words(at, 17, n - i < 16 ? n - i : 16);
      S::store(out + i, powers<S>(S::andi(words, S::set1i(255))));
    }
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    S::fp4_split(codes + int64_t{b} * 17 + 1, sc[0], w);
  }
};

template <class S>
struct Q4_0 {
  using F = typename S::F;
  static constexpr int kScales = 1;
  static constexpr int kFetch = 18;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    half_scales<S, 1, 18>(codes, first, n, out);
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    S::q4_centred(codes + int64_t{b} * 18 + 2, sc[0], w);
  }
};

template <class S>
struct Q4_1 {
  using F = typename S::F;
  static constexpr int kScales = 2;
  static constexpr int kFetch = 20;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    half_scales<S, 2, 20>(codes, first, n, out);
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    S::q4_affine(codes + int64_t{b} * 20 + 4, sc[0], sc[kPlane], w);
  }
};

// 5-bit codes: nibbles as in Q4, and the fifth bits of all 32 elements in one word before them.
template <class S, bool kAffine>
struct Q5 {
  using F = typename S::F;
  static constexpr int kScales = kAffine ? 2 : 1, kBytes = kAffine ? 24 : 22;
  static constexpr int kFetch = kBytes;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    half_scales<S, kScales, kBytes>(codes, first, n, out);
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    const uint8_t* at = codes + int64_t{b} * kBytes + 2 * kScales;
    const auto pair = S::bytes(at + 4);
    for (int half = 0; half < 2; ++half) {
      const auto low = half == 0 ? S::andi(pair, S::set1i(15)) : S::template shr<4>(pair);
      const auto code = S::ori(low, S::template shl<4>(S::bits(at + 2 * half)));
      if constexpr (kAffine)
        w[half] = S::add(S::mul(S::to_float(code), S::set1(sc[0])), S::set1(sc[kPlane]));
      else
        w[half] = S::mul(S::to_float(S::subi(code, S::set1i(16))), S::set1(sc[0]));
    }
  }
};

template <class S>
struct Q8_0 {
  using F = typename S::F;
  static constexpr int kScales = 1;
  static constexpr int kFetch = 34;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    half_scales<S, 1, 34>(codes, first, n, out);
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    const uint8_t* at = codes + int64_t{b} * 34 + 2;
    const F d = S::set1(sc[0]);
    w[0] = S::mul(S::to_float(S::signed_bytes(at)), d);
    w[1] = S::mul(S::to_float(S::signed_bytes(at + 16)), d);
  }
};

}  // namespace gannet::simd
