#include "kernels/row_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/dtype.h"

namespace gannet {
namespace {

constexpr std::array<float, 16> kE2m1 = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                         -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

constexpr std::array<float, 256> make_e4m3() {
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    float magnitude =
        exponent == 0 ? static_cast<float>(mantissa) / 8.0f : 1.0f + static_cast<float>(mantissa) / 8.0f;
    for (int e = exponent == 0 ? 1 : exponent; e > 7; --e) magnitude *= 2.0f;
    for (int e = exponent == 0 ? 1 : exponent; e < 7; ++e) magnitude *= 0.5f;
    if ((code & 0x7F) == 0x7F) magnitude = std::bit_cast<float>(0x7FC00000u);
    table[static_cast<size_t>(code)] = code & 0x80 ? -magnitude : magnitude;
  }
  return table;
}
constexpr std::array<float, 256> kE4m3 = make_e4m3();

float largest_magnitude(const float* x, int32_t n, float floor) {
  float amax = floor;
  for (int32_t i = 0; i < n; ++i) amax = std::max(amax, std::fabs(x[i]));
  return amax;
}

// The scale 2^k >= t as its byte. Infinite input has no scale; the largest finite one keeps the code defined.
uint8_t pow2_scale(float t) { return static_cast<uint8_t>(std::clamp(pow2_ceil_exponent(t) + 127, 1, 254)); }

void encode_fp8(const float* x, int32_t width, uint8_t* codes, uint8_t* scales) {
  for (int32_t begin = 0; begin < width; begin += 32) {
    const uint8_t scale = pow2_scale(largest_magnitude(x + begin, 32, 1e-4f) * std::bit_cast<float>(0x3b124925u));
    scales[begin / 32] = scale;
    const float s = e8m0_to_f32(scale);
    for (int32_t i = begin; i < begin + 32; ++i) codes[i] = f32_to_e4m3(x[i] / s);
  }
}

void encode_fp4_block(const float* x, int32_t n, float scale, uint8_t* codes) {
  for (int32_t i = 0; i < n; i += 2)
    codes[i / 2] = static_cast<uint8_t>(f32_to_e2m1(x[i] / scale) | f32_to_e2m1(x[i + 1] / scale) << 4);
}

void encode_fp4_ue8m0(const float* x, int32_t width, uint8_t* codes, uint8_t* scales) {
  for (int32_t begin = 0; begin < width; begin += 32) {
    const uint8_t scale =
        pow2_scale(largest_magnitude(x + begin, 32, 6 * 0x1p-126f) * std::bit_cast<float>(0x3e2aaaabu));
    scales[begin / 32] = scale;
    encode_fp4_block(x + begin, 32, e8m0_to_f32(scale), codes + begin / 2);
  }
}

void encode_fp4_e4m3(const float* x, int32_t width, uint8_t* codes, uint8_t* scales) {
  for (int32_t begin = 0; begin < width; begin += 16) {
    const uint8_t scale = f32_to_e4m3(largest_magnitude(x + begin, 16, 6 * 0x1p-9f) / 6.0f);
    scales[begin / 16] = scale;
    encode_fp4_block(x + begin, 16, kE4m3[scale], codes + begin / 2);
  }
}

void decode_fp4_block(const uint8_t* codes, int32_t n, float scale, float* out) {
  for (int32_t i = 0; i < n / 2; ++i) {
    out[2 * i] = kE2m1[codes[i] & 15] * scale;
    out[2 * i + 1] = kE2m1[codes[i] >> 4] * scale;
  }
}

void check_width(RowFormat format, int32_t width) {
  const int32_t block = format == RowFormat::fp4_e4m3 ? 16 : row_scale_bytes(format, 64) > 0 ? 32 : 1;
  GANNET_CHECK(width % block == 0, "{} channels in blocks of {}", width, block);
}

}  // namespace

void encode_row(RowFormat format, const float* x, int32_t width, std::byte* codes, std::byte* scales) {
  check_width(format, width);
  auto* code = reinterpret_cast<uint8_t*>(codes);
  auto* scale = reinterpret_cast<uint8_t*>(scales);
  switch (format) {
    case RowFormat::f32:
      std::memcpy(codes, x, static_cast<size_t>(width) * 4);
      return;
    case RowFormat::f16:
      for (int32_t i = 0; i < width; ++i) reinterpret_cast<f16*>(codes)[i] = to_f16(x[i]);
      return;
    case RowFormat::bf16:
      for (int32_t i = 0; i < width; ++i) reinterpret_cast<bf16*>(codes)[i] = to_bf16(x[i]);
      return;
    case RowFormat::fp8_ue8m0:
      return encode_fp8(x, width, code, scale);
    case RowFormat::fp4_ue8m0:
      return encode_fp4_ue8m0(x, width, code, scale);
    case RowFormat::fp4_e4m3:
      return encode_fp4_e4m3(x, width, code, scale);
    case RowFormat::i32:
      break;
  }
  GANNET_CHECK(false, "rows of ids have no real values");
}

void decode_row(RowFormat format, const std::byte* codes, const std::byte* scales, int32_t width, float* out) {
  check_width(format, width);
  const auto* code = reinterpret_cast<const uint8_t*>(codes);
  const auto* scale = reinterpret_cast<const uint8_t*>(scales);
  switch (format) {
    case RowFormat::f32:
      std::memcpy(out, codes, static_cast<size_t>(width) * 4);
      return;
    case RowFormat::f16:
      for (int32_t i = 0; i < width; ++i) out[i] = to_f32(reinterpret_cast<const f16*>(codes)[i]);
      return;
    case RowFormat::bf16:
      for (int32_t i = 0; i < width; ++i) out[i] = to_f32(reinterpret_cast<const bf16*>(codes)[i]);
      return;
    case RowFormat::fp8_ue8m0:
      for (int32_t begin = 0; begin < width; begin += 32) {
        const float s = e8m0_to_f32(scale[begin / 32]);
        for (int32_t i = begin; i < begin + 32; ++i) out[i] = kE4m3[code[i]] * s;
      }
      return;
    case RowFormat::fp4_ue8m0:
      for (int32_t begin = 0; begin < width; begin += 32)
        decode_fp4_block(code + begin / 2, 32, e8m0_to_f32(scale[begin / 32]), out + begin);
      return;
    case RowFormat::fp4_e4m3:
      for (int32_t begin = 0; begin < width; begin += 16)
        decode_fp4_block(code + begin / 2, 16, kE4m3[scale[begin / 16]], out + begin);
      return;
    case RowFormat::i32:
      break;
  }
  GANNET_CHECK(false, "rows of ids have no real values");
}

}  // namespace gannet
