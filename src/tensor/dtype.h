// Element types of dense tensors, and scalar conversions between them and fp32. Every conversion rounds to nearest
// even and is exact where the value is representable.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace gannet {

enum class DType : uint8_t { f32, f16, bf16, f8_e4m3, f8_e8m0, i8, u8, i32, u32, i64 };

constexpr int64_t dtype_bytes(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i64:
      return 8;
    default:
      return 1;
  }
}
std::string_view dtype_name(DType type);  // "F32", "BF16", ... as safetensors spells them

// ---- bf16: the upper half of an fp32 ---------------------------------------------------------------------------
struct bf16 {
  uint16_t bits;
};
inline float to_f32(bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
inline bf16 to_bf16(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((u >> 16) | 0x40u)};  // a NaN stays one
  return {static_cast<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16)};
}
inline float round_bf16(float x) { return to_f32(to_bf16(x)); }

// ---- IEEE half -------------------------------------------------------------------------------------------------
struct f16 {
  uint16_t bits;
};
float to_f32(f16 x);
f16 to_f16(float x);

// ---- fp8 e4m3fn: bias 7, max 448, no infinity, codes 0x7F and 0xFF are NaN
// ----------------------------------------
float e4m3_to_f32(uint8_t code);
uint8_t f32_to_e4m3(float x);  // saturates to +-448; NaN gives 0x7F

// ---- fp4 e2m1: magnitudes 0 .5 1 1.5 2 3 4 6, bit 3 is the sign
// ------------------------------------------------------
float e2m1_to_f32(uint8_t code);  // low 4 bits
uint8_t f32_to_e2m1(float x);     // saturates to +-6, ties to the even code, keeps the sign of zero

// ---- e8m0: 2^(b-127), 255 is NaN
// ---------------------------------------------------------------------------------
inline float e8m0_to_f32(uint8_t b) {
  if (b == 255) return std::bit_cast<float>(0x7FC00000u);
  return b == 0 ? std::bit_cast<float>(0x00400000u)
                : std::bit_cast<float>(uint32_t{b} << 23);  // 2^-127 is subnormal
}
// Exponent k of the smallest power of two >= t, for a positive normal t. Integer arithmetic on the bits.
inline int pow2_ceil_exponent(float t) {
  const auto u = std::bit_cast<uint32_t>(t);
  return static_cast<int>(u >> 23 & 255u) - 127 + ((u & 0x7FFFFFu) != 0);
}

}  // namespace gannet
