#include "kernels/row_codec.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "kernels/cpu/sparse_kernels.h"
#include "kernels/quantize_rows.h"
#include "support/kernels.h"

namespace gannet {
namespace {

using test::Random;

struct Coded {
  std::array<std::byte, 128> codes{}, scales{};
  std::vector<float> values;
};

Coded code(RowFormat format, const std::vector<float>& x) {
  Coded c;
  c.values.resize(x.size());
  const auto width = static_cast<int32_t>(x.size());
  encode_row(format, x.data(), width, c.codes.data(), c.scales.data());
  decode_row(format, c.codes.data(), c.scales.data(), width, c.values.data());
  return c;
}

int exponent_of_block(RowFormat format, float amax) {
  std::vector<float> x(32, 0.0f);
  x[7] = -amax;
  return static_cast<int>(code(format, x).scales[0]) - 127;
}

TEST(RowCodec, PowerOfTwoScalesOfFp8) {
  const std::pair<float, int> cases[] = {{0, -22},   {1e-4f, -22}, {0.875f, -9}, {1, -8}, {1.75f, -8},
                                         {3.5f, -7}, {7, -6},      {448, 0},     {449, 1}};
  for (const auto& [amax, k] : cases) EXPECT_EQ(exponent_of_block(RowFormat::fp8_ue8m0, amax), k) << amax;
}

TEST(RowCodec, PowerOfTwoScalesOfFp4) {
  const std::pair<float, int> cases[] = {{0.1f, -5}, {0.75f, -3}, {1, -2}, {1.5f, -2}, {3, -1},
                                         {6, 0},     {6.1f, 1},   {12, 1}, {0, -126}};
  for (const auto& [amax, k] : cases) EXPECT_EQ(exponent_of_block(RowFormat::fp4_ue8m0, amax), k) << amax;
}

TEST(RowCodec, ScaleOfCompressedRowsIsRoundedItself) {
  std::vector<float> x(16, 0.25f);
  x[3] = 1;  // 1/6 rounds to 0.171875, 1 / 0.171875 to 6
  const Coded c = code(RowFormat::fp4_e4m3, x);
  EXPECT_EQ(c.values[3], 1.03125f);
  EXPECT_EQ(code(RowFormat::fp4_e4m3, std::vector<float>(16, 0.0f)).scales[0], std::byte{1});  // the floor: 2^-9
  EXPECT_EQ(code(RowFormat::fp4_e4m3, std::vector<float>(16, 1e30f)).values[0], 6 * 448.0f);   // saturates twice
}

TEST(RowCodec, TiesGoToTheEvenCodeAndZeroKeepsItsSign) {
  std::vector<float> x(32, 0.0f);
  const float ties[] = {6, 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -0.25f};
  const float want[] = {6, 0, 1, 1, 2, 2, 4, 4, -0.0f};
  std::copy(std::begin(ties), std::end(ties), x.begin());
  const Coded c = code(RowFormat::fp4_ue8m0, x);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(c.values[i], want[i]) << ties[i];
    EXPECT_EQ(std::signbit(c.values[i]), std::signbit(want[i])) << ties[i];
  }
}

TEST(RowCodec, EvenChannelsLieInTheLowNibble) {
  std::vector<float> x(32, 0.0f);
  x[0] = 6;      // code 7
  x[1] = -0.5f;  // code 9
  EXPECT_EQ(code(RowFormat::fp4_ue8m0, x).codes[0], std::byte{0x97});
}

// Decoded values survive a second pass, are exact in bf16, and lie within half a step.
TEST(RowCodec, CodesAreAFixedPoint) {
  Random random(5);
  for (const RowFormat format : {RowFormat::fp8_ue8m0, RowFormat::fp4_ue8m0, RowFormat::fp4_e4m3})
    for (int i = 0; i < 300; ++i) {
      std::vector<float> x(64);
      const float scale = std::ldexp(1.0f, random.below(24) - 12);
      for (float& v : x) v = round_bf16(random.unit() * scale);
      const Coded once = code(format, x);
      for (const float v : once.values) ASSERT_EQ(round_bf16(v), v);
      if (format == RowFormat::fp4_e4m3)
        continue;  // its scale is not a power of two: a second pass may pick another
      const Coded twice = code(format, once.values);
      ASSERT_EQ(once.values, twice.values);
    }
}

TEST(RowCodec, FastDecodersGiveTheSameValues) {
  const Machine machine = this_machine();
  Random random(6);
  for (const RowFormat format : {RowFormat::f32, RowFormat::fp8_ue8m0, RowFormat::fp4_ue8m0, RowFormat::fp4_e4m3})
    for (const bool avx512 : {false, true}) {
      if (!machine.cpu.avx2 || (avx512 && !machine.cpu.avx512)) continue;
      for (int i = 0; i < 200; ++i) {
        std::vector<float> x(96), got(96);
        for (float& v : x) v = random.unit() * std::ldexp(1.0f, random.below(40) - 20);
        std::array<std::byte, 400> codes{}, scales{};
        std::vector<float> want(96);
        encode_row(format, x.data(), 96, codes.data(), scales.data());
        decode_row(format, codes.data(), scales.data(), 96, want.data());
        sparse_kernels(avx512).decode(format, codes.data(), scales.data(), 96, got.data());
        ASSERT_EQ(std::memcmp(got.data(), want.data(), 96 * sizeof(float)), 0)
            << static_cast<int>(format) << avx512;
      }
    }
}

TEST(QuantizeRows, GroupsAndStrides) {
  Random random(7);
  for (const DType type : {DType::bf16, DType::f32})
    for (const auto& [rows, groups, width] : {std::tuple{0, 1, 32}, {3, 1, 96}, {5, 7, 32}, {2, 40, 64}}) {
      test::Matrix x(rows, groups * width, type, 5, 1), out(rows, groups * width, type, 3, 2);
      x.fill(random, 3);
      test::TestExec exec;
      const auto op = plan(QuantizeRows{RowFormat::fp4_ue8m0, width, groups, type, type}, this_machine());
      op({x.view(), out.view()}, exec.exec);
      ASSERT_TRUE(out.canaries_intact());
      for (int64_t r = 0; r < rows; ++r)
        for (int32_t g = 0; g < groups; ++g) {
          std::vector<float> row;
          for (int32_t c = 0; c < width; ++c) row.push_back(x.get(r, int64_t{g} * width + c));
          const Coded want = code(RowFormat::fp4_ue8m0, row);
          for (int32_t c = 0; c < width; ++c)
            ASSERT_EQ(out.get(r, int64_t{g} * width + c), want.values[static_cast<size_t>(c)]);
        }
    }
}

}  // namespace
}  // namespace gannet
