// How 32 columns of each weight format become 32 fp32 values in registers. A format is a struct over `Simd` with
//   kScales                                          fp32 scale values for each 32 columns
//   scales(codes, scale_row, first, n, out)          those of 32-column blocks [first, first + n); writes up to 15
//   more block(codes, b, sc, w)                           block b of the row, given its own scales tail(codes,
//   begin, n, w)                         fewer than 32 columns; only where a row may end so (kDense)
// The values are those of dequantize() in tensor/weight.h, with the same roundings.
#pragma once

#include <cstdint>

namespace gannet::simd {

template <class T>
T load_as(const uint8_t* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

constexpr int kChunkBlocks = 64;  // blocks whose scales are prepared at once: 2048 columns

// `kFields` halves at the start of each block of `kBytes`.
template <class S, int kFields, int kBytes>
void half_scales(const uint8_t* codes, int first, int n, float* out) {
  uint16_t raw[kChunkBlocks * kFields + 16];
  const uint8_t* at = codes + int64_t{first} * kBytes;
  for (int i = 0; i < n; ++i, at += kBytes) __builtin_memcpy(raw + i * kFields, at, 2 * kFields);
  for (int i = n * kFields; i < n * kFields + 16; ++i) raw[i] = 0;
  for (int i = 0; i < n * kFields; i += 16) S::store(out + i, S::from_f16(raw + i));
}

template <class S>
void power_scales(const uint8_t* scale_row, int first, int n, float* out) {
  for (int i = 0; i < n; ++i) {
    const uint32_t e = scale_row[first + i];
    const uint32_t bits = e == 0     ? 0x00400000u
                          : e == 255 ? 0x7FC00000u
                                     : e << 23;  // 2^-127 is subnormal; 255 is NaN
    __builtin_memcpy(out + i, &bits, 4);
  }
}

template <class S>
struct DenseF32 {
  using F = typename S::F;
  static constexpr int kScales = 0;
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
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    for (int i = 0; i < n; ++i) power_scales<S>(codes + int64_t{first + i} * 17, 0, 1, out + i);
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    S::fp4_split(codes + int64_t{b} * 17 + 1, sc[0], w);
  }
};

template <class S>
struct Q4_0 {
  using F = typename S::F;
  static constexpr int kScales = 1;
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
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    half_scales<S, 2, 20>(codes, first, n, out);
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    S::q4_affine(codes + int64_t{b} * 20 + 4, sc, w);
  }
};

// 5-bit codes: nibbles as in Q4, and the fifth bits of all 32 elements in one word before them.
template <class S, bool kAffine>
struct Q5 {
  using F = typename S::F;
  static constexpr int kScales = kAffine ? 2 : 1, kBytes = kAffine ? 24 : 22;
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
        w[half] = S::add(S::mul(S::to_float(code), S::set1(sc[0])), S::set1(sc[1]));
      else
        w[half] = S::mul(S::to_float(S::subi(code, S::set1i(16))), S::set1(sc[0]));
    }
  }
};

template <class S>
struct Q8_0 {
  using F = typename S::F;
  static constexpr int kScales = 1;
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
