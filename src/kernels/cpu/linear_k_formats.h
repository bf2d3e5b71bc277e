// The K-quants of GGUF: super-blocks of 256 columns, read as eight blocks of 32. See linear_formats.h.
#pragma once

#include "kernels/cpu/linear_formats.h"

namespace gannet::simd {

template <class S>
float half_at(const uint8_t* at) {  // through the vector conversion: the scalar one would be shared code
  uint16_t raw[16] = {};
  __builtin_memcpy(raw, at, 2);
  float out[16];
  S::store(out, S::from_f16(raw));
  return out[0];
}

// fl(fl(fl(d * sc) * q) - fl(dmin * m)), 2-bit codes, scale and minimum per 16.
template <class S>
struct Q2K {
  using F = typename S::F;
  static constexpr int kScales = 4;
  static constexpr int kFetch = 84 / 8;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    for (int b = first; b < first + n; b += 8) {
      const uint8_t* super = codes + int64_t{b / 8} * 84;
      const float d = half_at<S>(super + 80), dmin = half_at<S>(super + 82);
      for (int sub = 0; sub < 16; ++sub) {
        float* to = out + sub % 2 * 2 * kPlane + (b - first) + sub / 2;
        to[0] = d * static_cast<float>(super[sub] & 15);
        to[kPlane] = dmin * static_cast<float>(super[sub] >> 4);
      }
    }
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    const uint8_t* super = codes + int64_t{b / 8} * 84;
    const int part = b % 8;
    for (int half = 0; half < 2; ++half) {
      const auto bytes = S::bytes(super + 16 + part / 4 * 32 + half * 16);
      const auto code = S::andi(S::shr_by(bytes, part % 4 * 2), S::set1i(3));
      w[half] =
          S::sub(S::mul(S::to_float(code), S::set1(sc[2 * half * kPlane])), S::set1(sc[(2 * half + 1) * kPlane]));
    }
  }
};

// 3-bit codes: two bits, and a mask of the elements from which 4 is not subtracted; 6-bit scale per 16.
template <class S>
struct Q3K {
  using F = typename S::F;
  static constexpr int kScales = 2;
  static constexpr int kFetch = 110 / 8;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    for (int b = first; b < first + n; b += 8) {
      const uint8_t* super = codes + int64_t{b / 8} * 110;
      const uint8_t* packed = super + 96;
      const float d = half_at<S>(super + 108);
      for (int sub = 0; sub < 16; ++sub) {
        const int low = sub < 8 ? packed[sub] & 15 : packed[sub - 8] >> 4;
        const int high = packed[8 + sub % 4] >> (2 * (sub / 4)) & 3;
        out[sub % 2 * kPlane + (b - first) + sub / 2] = d * static_cast<float>((low | high << 4) - 32);
      }
    }
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    const uint8_t* super = codes + int64_t{b / 8} * 110;
    const int part = b % 8;
    for (int half = 0; half < 2; ++half) {
      const auto bytes = S::bytes(super + 32 + part / 4 * 32 + half * 16);
      const auto low = S::andi(S::shr_by(bytes, part % 4 * 2), S::set1i(3));
      const auto high = S::andi(S::shr_by(S::bytes(super + half * 16), part), S::set1i(1));
      const auto code = S::subi(S::ori(low, S::template shl<2>(high)), S::set1i(4));
      w[half] = S::mul(S::to_float(code), S::set1(sc[half * kPlane]));
    }
  }
};

// 4- and 5-bit codes, 6-bit scale and minimum per 32.
template <class S, bool kFive>
struct Q45K {
  using F = typename S::F;
  static constexpr int kScales = 2, kBytes = kFive ? 176 : 144;
  static constexpr int kFetch = kBytes / 8;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    for (int b = first; b < first + n; b += 8) {
      const uint8_t* super = codes + int64_t{b / 8} * kBytes;
      const float d = half_at<S>(super), dmin = half_at<S>(super + 2);
      const uint8_t* packed = super + 4;
      for (int j = 0; j < 8; ++j) {
        const int scale = j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
        const int minimum = j < 4 ? packed[j + 4] & 63 : (packed[j + 4] >> 4) | (packed[j] >> 6) << 4;
        out[(b - first) + j] = d * static_cast<float>(scale);
        out[kPlane + (b - first) + j] = dmin * static_cast<float>(minimum);
      }
    }
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    const uint8_t* super = codes + int64_t{b / 8} * kBytes;
    const uint8_t* qs = super + (kFive ? 48 : 16);
    const int part = b % 8;
    for (int half = 0; half < 2; ++half) {
      auto code = S::andi(S::shr_by(S::bytes(qs + part / 2 * 32 + half * 16), part % 2 * 4), S::set1i(15));
      if constexpr (kFive) {
        const auto high = S::andi(S::shr_by(S::bytes(super + 16 + half * 16), part), S::set1i(1));
        code = S::ori(code, S::template shl<4>(high));
      }
      w[half] = S::sub(S::mul(S::to_float(code), S::set1(sc[0])), S::set1(sc[kPlane]));
    }
  }
};

// 6-bit codes: nibbles and two high bits; int8 scale per 16.
template <class S>
struct Q6K {
  using F = typename S::F;
  static constexpr int kScales = 2;
  static constexpr int kFetch = 210 / 8;
  static constexpr bool kDense = false;
  static void scales(const uint8_t* codes, const uint8_t*, int first, int n, float* out) {
    for (int b = first; b < first + n; b += 8) {
      const uint8_t* super = codes + int64_t{b / 8} * 210;
      const float d = half_at<S>(super + 208);
      for (int sub = 0; sub < 16; ++sub)
        out[sub % 2 * kPlane + (b - first) + sub / 2] =
            d * static_cast<float>(static_cast<int8_t>(super[192 + sub]));
    }
  }
  static void block(const uint8_t* codes, int b, const float* sc, F w[2]) {
    const uint8_t* super = codes + int64_t{b / 8} * 210;
    const int group = b % 8 / 4, quarter = b % 4;
    for (int half = 0; half < 2; ++half) {
      const auto pair = S::bytes(super + group * 64 + quarter % 2 * 32 + half * 16);
      const auto low = S::andi(S::shr_by(pair, quarter / 2 * 4), S::set1i(15));
      const auto high =
          S::andi(S::shr_by(S::bytes(super + 128 + group * 32 + half * 16), 2 * quarter), S::set1i(3));
      w[half] = S::mul(S::to_float(S::subi(S::ori(low, S::template shl<4>(high)), S::set1i(32))),
                       S::set1(sc[half * kPlane]));
    }
  }
};

}  // namespace gannet::simd
