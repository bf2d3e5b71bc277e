#include "tensor/dtype.h"

#include <array>

namespace gannet {
namespace {

constexpr float kE2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

std::array<float, 256> make_e4m3() {
  std::array<float, 256> table{};
  for (int b = 0; b < 256; ++b) {
    const int e = b >> 3 & 15, m = b & 7;
    const float magnitude =
        e == 0 ? std::ldexp(static_cast<float>(m), -9) : std::ldexp(1.0f + static_cast<float>(m) / 8, e - 7);
    table[static_cast<size_t>(b)] = (b & 127) == 127 ? std::bit_cast<float>(0x7FC00000u)
                                    : b & 128        ? -magnitude
                                                     : magnitude;
  }
  return table;
}
const std::array<float, 256> kE4m3 = make_e4m3();

}  // namespace

std::string_view dtype_name(DType type) {
  switch (type) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::f8_e4m3:
      return "F8_E4M3";
    case DType::f8_e8m0:
      return "F8_E8M0";
    case DType::i8:
      return "I8";
    case DType::u8:
      return "U8";
    case DType::i32:
      return "I32";
    case DType::u32:
      return "U32";
    case DType::i64:
      return "I64";
  }
  return "?";
}

float to_f32(f16 x) {
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  const uint32_t e = x.bits >> 10 & 31u, m = x.bits & 1023u;
  if (e == 31) return std::bit_cast<float>(sign | 0x7F800000u | m << 13 | (m != 0 ? 0x400000u : 0u));
  if (e != 0) return std::bit_cast<float>(sign | (e + 112) << 23 | m << 13);
  const float magnitude = std::ldexp(static_cast<float>(m), -24);
  return sign != 0 ? -magnitude : magnitude;
}

f16 to_f16(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>(u >> 16 & 0x8000u);
  const float magnitude = std::fabs(x);
  if (std::isnan(x)) return {static_cast<uint16_t>(sign | 0x7E00u)};
  if (magnitude >= 65520.0f) return {static_cast<uint16_t>(sign | 0x7C00u)};
  if (magnitude < 0x1p-14f)  // subnormal: adding 2^-24 * 2^24 / 2 style rounding is what nearbyint does
    return {static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyintf(std::ldexp(magnitude, 24))))};
  const uint32_t m = u & 0x7FFFFFFFu;
  return {static_cast<uint16_t>(sign | ((m + 0xFFFu + (m >> 13 & 1u)) - (112u << 23)) >> 13)};
}

float e4m3_to_f32(uint8_t code) { return kE4m3[code]; }

uint8_t f32_to_e4m3(float x) {
  const auto sign = static_cast<uint8_t>(std::bit_cast<uint32_t>(x) >> 24 & 0x80u);
  if (std::isnan(x)) return 0x7F;
  const float magnitude = std::fabs(x);
  if (magnitude >= 448.0f) return sign | 0x7E;
  if (magnitude < 0x1p-6f)  // subnormals, in steps of 2^-9; 8 steps are the first normal number, also in its code
    return static_cast<uint8_t>(sign | static_cast<uint8_t>(std::nearbyintf(std::ldexp(magnitude, 9))));
  const uint32_t m = std::bit_cast<uint32_t>(magnitude);
  return static_cast<uint8_t>(sign | (((m + 0x7FFFFu + (m >> 20 & 1u)) - (120u << 23)) >> 20));
}

float e2m1_to_f32(uint8_t code) { return code & 8 ? -kE2m1[code & 7] : kE2m1[code & 7]; }

uint8_t f32_to_e2m1(float x) {
  const auto sign = static_cast<uint8_t>(std::bit_cast<uint32_t>(x) >> 28 & 8u);
  const float a = std::fabs(x);
  // A boundary belongs to the neighbour with the even code.
  const int code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
  return static_cast<uint8_t>(sign | code);
}

}  // namespace gannet
