#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace gannet {
namespace {

// The value of a small float format from its definition, in double.
double decode(int bits, int exponent_bits, int mantissa_bits, int bias) {
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1),
            mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

// Every adjacent pair of magnitudes: the middle goes to the even code, its neighbours to the nearer one; both
// signs.
template <class Value, class Encode>
void check_rounding(int n_codes, Value value, Encode encode) {
  for (int code = 0; code + 1 < n_codes; ++code) {
    const float low = value(code), high = value(code + 1);
    ASSERT_LT(low, high) << code;
    const auto middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
    for (const float sign : {1.0f, -1.0f}) {
      const int bit = sign < 0 ? 1 : 0;
      ASSERT_EQ(encode(sign * low), std::pair(bit, code)) << code;
      ASSERT_EQ(encode(sign * middle), std::pair(bit, code % 2 == 0 ? code : code + 1)) << code;
      ASSERT_EQ(encode(sign * std::nextafter(middle, 0.0f)), std::pair(bit, code)) << code;
      ASSERT_EQ(encode(sign * std::nextafter(middle, std::numeric_limits<float>::max())), std::pair(bit, code + 1))
          << code;
    }
  }
}

TEST(Dtype, E4m3EveryCode) {
  for (int code = 0; code < 256; ++code) {
    const float got = e4m3_to_f32(static_cast<uint8_t>(code));
    if ((code & 127) == 127)
      EXPECT_TRUE(std::isnan(got)) << code;
    else
      EXPECT_TRUE(same_bits(got, static_cast<float>(decode(code, 4, 3, 7)))) << code << " " << got;
  }
  EXPECT_EQ(e4m3_to_f32(0x7E), 448.0f);
  EXPECT_TRUE(std::signbit(e4m3_to_f32(0x80)));
}

TEST(Dtype, E4m3Rounds) {
  check_rounding(
      127, [](int c) { return e4m3_to_f32(static_cast<uint8_t>(c)); },
      [](float x) {
        const uint8_t code = f32_to_e4m3(x);
        return std::pair(code >> 7, code & 127);
      });
  for (const float x : {448.0f, 449.0f, 464.0f, 1e30f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(f32_to_e4m3(x), 0x7E) << x;
    EXPECT_EQ(f32_to_e4m3(-x), 0xFE) << x;
  }
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::quiet_NaN()), 0x7F);
  EXPECT_EQ(f32_to_e4m3(-0.0f), 0x80);
  EXPECT_EQ(f32_to_e4m3(1e-40f), 0);
}

TEST(Dtype, E2m1EveryCodeAndRounds) {
  const float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int code = 0; code < 16; ++code)
    EXPECT_TRUE(
        same_bits(e2m1_to_f32(static_cast<uint8_t>(code)), code < 8 ? magnitudes[code] : -magnitudes[code - 8]))
        << code;
  check_rounding(
      8, [](int c) { return e2m1_to_f32(static_cast<uint8_t>(c)); },
      [](float x) {
        const uint8_t code = f32_to_e2m1(x);
        return std::pair(code >> 3, code & 7);
      });
  EXPECT_EQ(f32_to_e2m1(1e9f), 7);
  EXPECT_EQ(f32_to_e2m1(-1e9f), 15);
  EXPECT_EQ(f32_to_e2m1(-0.0f), 8);
}

TEST(Dtype, E8m0EveryCode) {
  for (int b = 0; b < 255; ++b)
    EXPECT_EQ(static_cast<double>(e8m0_to_f32(static_cast<uint8_t>(b))), std::ldexp(1.0, b - 127)) << b;
  EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
}

TEST(Dtype, F16EveryCode) {
  for (int bits = 0; bits < 65536; ++bits) {
    const f16 half{static_cast<uint16_t>(bits)};
    const float got = to_f32(half);
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 31 && mantissa != 0) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_EQ(to_f16(got).bits & 0x7C00, 0x7C00) << bits;
      ASSERT_NE(to_f16(got).bits & 0x3FF, 0) << bits;
      continue;
    }
    const double want = exponent == 31 ? (bits & 0x8000 ? -INFINITY : INFINITY) : decode(bits, 5, 10, 15);
    ASSERT_TRUE(same_bits(got, static_cast<float>(want))) << bits;
    ASSERT_EQ(to_f16(got).bits, bits);
  }
}

TEST(Dtype, F16Rounds) {
  check_rounding(
      0x7C00, [](int c) { return to_f32(f16{static_cast<uint16_t>(c)}); },
      [](float x) {
        const uint16_t bits = to_f16(x).bits;
        return std::pair(bits >> 15, bits & 0x7FFF);
      });
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_f16(-1e30f).bits, 0xFC00);
  EXPECT_EQ(to_f16(1e-45f).bits, 0);
}

TEST(Dtype, Bf16EveryCodeAndRounds) {
  for (int bits = 0; bits < 65536; ++bits) {
    const bf16 x{static_cast<uint16_t>(bits)};
    ASSERT_EQ(std::bit_cast<uint32_t>(to_f32(x)), static_cast<uint32_t>(bits) << 16);
    if (std::isnan(to_f32(x)))
      ASSERT_TRUE(std::isnan(to_f32(to_bf16(to_f32(x))))) << bits;
    else
      ASSERT_EQ(to_bf16(to_f32(x)).bits, bits);
  }
  check_rounding(
      0x7F7F, [](int c) { return to_f32(bf16{static_cast<uint16_t>(c)}); },
      [](float x) {
        const uint16_t bits = to_bf16(x).bits;
        return std::pair(bits >> 15, bits & 0x7FFF);
      });
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7F80);
  // A NaN whose payload lies in the bits that are cut off stays a NaN.
  EXPECT_TRUE(std::isnan(to_f32(to_bf16(std::bit_cast<float>(0x7F800001u)))));
}

TEST(Dtype, Pow2CeilExponent) {
  for (int k = -120; k < 120; ++k) {
    const float power = std::ldexp(1.0f, k);
    EXPECT_EQ(pow2_ceil_exponent(power), k);
    EXPECT_EQ(pow2_ceil_exponent(std::nextafter(power, 1e38f)), k + 1);
    EXPECT_EQ(pow2_ceil_exponent(std::nextafter(power, 0.0f)), k);
  }
}

}  // namespace
}  // namespace gannet
