#include "tensor/weight.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/gguf_blocks.h"

namespace gannet {
namespace {

const std::pair<const char*, WeightFormat> kGguf[] = {
    {"Q4_0", WeightFormat::q4_0}, {"Q4_1", WeightFormat::q4_1},       {"Q5_0", WeightFormat::q5_0},
    {"Q5_1", WeightFormat::q5_1}, {"Q8_0", WeightFormat::q8_0},       {"Q2_K", WeightFormat::q2_k},
    {"Q3_K", WeightFormat::q3_k}, {"Q4_K", WeightFormat::q4_k},       {"Q5_K", WeightFormat::q5_k},
    {"Q6_K", WeightFormat::q6_k}, {"MXFP4", WeightFormat::mxfp4_gguf}};

// Blocks and values made by the gguf package: tests/golden/gguf_blocks/make.py.
TEST(GgufBlocks, EveryFormatMatchesTheGoldenBitForBit) {
  std::ifstream file(GANNET_SOURCE_DIR "/tests/golden/gguf_blocks/blocks.bin", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(all.empty());
  size_t at = 0;
  for (const auto& [name, format] : kGguf) {
    uint32_t head[3];
    ASSERT_LE(at + 20, all.size());
    ASSERT_STREQ(all.substr(at, 8).c_str(), name);
    std::memcpy(head, all.data() + at + 8, 12);
    const auto [n, block_bytes, elements] = std::tuple(head[0], head[1], head[2]);
    ASSERT_EQ(static_cast<int32_t>(block_bytes), weight_format_info(format).block_bytes) << name;
    ASSERT_EQ(static_cast<int32_t>(elements), weight_format_info(format).block_elements) << name;
    at += 20;
    const auto* codes = reinterpret_cast<const std::byte*>(all.data() + at);
    at += size_t{n} * block_bytes;
    std::vector<float> want(size_t{n} * elements), got(want.size(), NAN);
    ASSERT_LE(at + want.size() * 4, all.size());
    std::memcpy(want.data(), all.data() + at, want.size() * 4);
    at += want.size() * 4;
    dequantize_gguf(format, codes, n, got.data());
    for (size_t i = 0; i < want.size(); ++i) {
      // The package decodes e2m1 through integers and so loses the sign of -0, which ours keeps.
      if (format == WeightFormat::mxfp4_gguf && got[i] == 0) got[i] = 0;
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
          << name << " element " << i << ": " << got[i] << " " << want[i];
    }
  }
  EXPECT_EQ(at, all.size());
}

TEST(GgufBlocks, Mxfp4ScaleOfEveryExponent) {
  std::byte block[17];
  for (int b = 0; b < 256; ++b) {
    block[0] = static_cast<std::byte>(b);
    for (int i = 0; i < 16; ++i) block[1 + i] = static_cast<std::byte>(i | (15 - i) << 4);
    float out[32];
    dequantize_gguf(WeightFormat::mxfp4_gguf, block, 1, out);
    for (int i = 0; i < 16; ++i) {  // low nibbles are elements 0..15, high nibbles 16..31
      const double low = e2m1_to_f32(static_cast<uint8_t>(i)), high = e2m1_to_f32(static_cast<uint8_t>(15 - i));
      if (b == 255) {
        EXPECT_TRUE(std::isnan(out[i]) && std::isnan(out[16 + i]));
        continue;
      }
      EXPECT_EQ(out[i], static_cast<float>(std::ldexp(low, b - 127))) << b << " " << i;
      EXPECT_EQ(out[16 + i], static_cast<float>(std::ldexp(high, b - 127))) << b << " " << i;
    }
  }
}

// A random weight with scales apart, decoded here by the definition.
class ScaledWeight : public testing::TestWithParam<WeightFormat> {};

TEST_P(ScaledWeight, EveryElementByTheDefinition) {
  constexpr int32_t out = 70, in = 96;
  const WeightFormat format = GetParam();
  const bool fp4 = format == WeightFormat::mxfp4_1x32, blocked = format == WeightFormat::fp8_32x32;
  const int64_t row_bytes = fp4 ? in / 2 : in, scale_rows = blocked ? 3 : out;
  std::mt19937 random(7);
  std::vector<std::byte> codes(static_cast<size_t>(out * row_bytes)), scales(static_cast<size_t>(scale_rows * 3));
  for (auto& c : codes) c = static_cast<std::byte>(random());
  for (auto& s : scales) s = static_cast<std::byte>(random());  // every exponent, NaN included
  scales[0] = std::byte{0};
  scales[1] = std::byte{255};
  scales[2] = std::byte{254};
  const WeightView w{format, out, in, codes.data(), scales.data(), row_bytes, 3};
  EXPECT_EQ(w.bytes(), static_cast<int64_t>(codes.size() + scales.size()));
  std::vector<float> row(in);
  for (int32_t o = 0; o < out; ++o) {
    dequantize(w, o, 0, in, row.data());
    for (int32_t i = 0; i < in; ++i) {
      const auto byte = static_cast<uint8_t>(codes[static_cast<size_t>(o * row_bytes + (fp4 ? i / 2 : i))]);
      const double code = fp4 ? e2m1_to_f32(i % 2 == 0 ? byte & 15 : byte >> 4) : e4m3_to_f32(byte);
      const auto exponent = static_cast<uint8_t>(scales[static_cast<size_t>((blocked ? o / 32 : o) * 3 + i / 32)]);
      if (exponent == 255 || std::isnan(code)) {
        ASSERT_TRUE(std::isnan(row[static_cast<size_t>(i)])) << o << " " << i;
        continue;
      }
      const auto want = static_cast<float>(std::ldexp(code, exponent - 127));  // overflow to infinity included
      ASSERT_EQ(std::bit_cast<uint32_t>(row[static_cast<size_t>(i)]), std::bit_cast<uint32_t>(want))
          << o << " " << i;
    }
  }
}

TEST_P(ScaledWeight, RowsAndColumnsOfAPart) {
  constexpr int32_t out = 96, in = 64;
  const WeightFormat format = GetParam();
  const bool fp4 = format == WeightFormat::mxfp4_1x32, blocked = format == WeightFormat::fp8_32x32;
  const int64_t row_bytes = fp4 ? in / 2 : in;
  std::mt19937 random(8);
  std::vector<std::byte> codes(static_cast<size_t>(out * row_bytes)),
      scales(static_cast<size_t>((blocked ? 3 : out) * 2));
  for (auto& c : codes) c = static_cast<std::byte>(random() & 0x77);
  for (auto& s : scales) s = static_cast<std::byte>(120 + random() % 16);
  const WeightView w{format, out, in, codes.data(), scales.data(), row_bytes, 2};
  const WeightView part = w.rows(32, 40);
  EXPECT_EQ(part.out, 40);
  std::vector<float> whole(in), half(32);
  for (int32_t r = 0; r < 40; ++r) {
    dequantize(w, 32 + r, 0, in, whole.data());
    dequantize(part, r, 32, 32, half.data());
    for (int32_t i = 0; i < 32; ++i)
      ASSERT_EQ(half[static_cast<size_t>(i)], whole[static_cast<size_t>(32 + i)]) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ScaledWeight,
                         testing::Values(WeightFormat::fp8_32x32, WeightFormat::fp8_1x32,
                                         WeightFormat::mxfp4_1x32));

TEST(Weight, DenseTypesAtAnyAddress) {
  std::vector<std::byte> memory(1 + 3 * 5 * 4);
  std::mt19937 random(9);
  for (auto& b : memory) b = static_cast<std::byte>(random() & 0x3F);
  for (const auto& [format, size] :
       {std::pair{WeightFormat::f32, 4}, std::pair{WeightFormat::f16, 2}, std::pair{WeightFormat::bf16, 2}}) {
    const WeightView w{format, 3, 5, memory.data() + 1, nullptr, 5 * size, 0};
    float out[3];
    dequantize(w, 2, 1, 3, out);
    for (int i = 0; i < 3; ++i) {
      const std::byte* at = w.codes + 2 * w.row_bytes + (1 + i) * size;
      uint32_t u32 = 0;
      uint16_t u16 = 0;
      std::memcpy(&u32, at, 4 <= size ? 4 : 0);
      std::memcpy(&u16, at, 2);
      const float want = size == 4                     ? std::bit_cast<float>(u32)
                         : format == WeightFormat::f16 ? to_f32(f16{u16})
                                                       : to_f32(bf16{u16});
      EXPECT_EQ(out[i], want);
    }
  }
}

TEST(WeightDeathTest, AnFp8BlockIsNotCut) {
  std::byte memory[64 * 32 + 4] = {};
  const WeightView w{WeightFormat::fp8_32x32, 64, 32, memory, memory + 64 * 32, 32, 1};
  EXPECT_DEATH((void)w.rows(16, 16), "cuts a 32 x 32 block");
  EXPECT_DEATH((void)w.rows(32, 33), "rows 32");
}

}  // namespace
}  // namespace gannet
