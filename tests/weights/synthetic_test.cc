#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "weights/checkpoint.h"

namespace gannet::weights {
namespace {

WeightSpec spec(std::string name, int64_t out, int64_t in, Stored stored, Fill fill = Fill::matrix) {
  WeightSpec s;
  s.name = std::move(name);
  s.rank = out == 1 ? 1 : 2;
  s.out = out;
  s.in = in;
  s.stored = stored;
  s.fill = fill;
  return s;
}

std::vector<WeightSpec> specs() {
  return {spec("bf16.weight", 96, 512, Stored::bf16),
          spec("f32.weight", 96, 512, Stored::f32),
          spec("fp8.weight", 96, 512, Stored::fp8_32x32),
          spec("row.weight", 96, 512, Stored::fp8_1x32, Fill::embedding),
          spec("fp4.weight", 96, 512, Stored::mxfp4_1x32),
          spec("norm.weight", 1, 512, Stored::bf16, Fill::norm),
          spec("base", 1, 24, Stored::f32, Fill::offset)};
}

Checkpoint make(uint64_t seed, int64_t unique = int64_t{1} << 30) {
  auto c = Checkpoint::synthetic("deepseek_v41", specs(), {seed, unique});
  EXPECT_TRUE(c);
  return std::move(*c);
}

double rms(const WeightView& w) {
  std::vector<float> row(static_cast<size_t>(w.in));
  double sum = 0;
  for (int32_t r = 0; r < w.out; ++r) {
    dequantize(w, r, 0, w.in, row.data());
    for (const float x : row) {
      EXPECT_TRUE(std::isfinite(x));
      sum += static_cast<double>(x) * x;
    }
  }
  return std::sqrt(sum / (static_cast<double>(w.out) * w.in));
}

TEST(Synthetic, ValuesAreFiniteAndOfTheAskedSize) {
  const Checkpoint c = make(3);
  for (const std::string_view name : {"bf16.weight", "f32.weight", "fp8.weight", "fp4.weight"}) {
    const auto w = c.matrix(name, 96, 512);
    ASSERT_TRUE(w) << w.error().message;
    // Scales are powers of two, so within half a step, and random by one step: 0.6 .. 1.8 of 512^-1/2.
    EXPECT_GT(rms(*w) * std::sqrt(512.0), 0.5) << name;
    EXPECT_LT(rms(*w) * std::sqrt(512.0), 2.0) << name;
    EXPECT_TRUE(c.check_scales(name, *w));
  }
  const auto table = c.matrix("row.weight", 96, 512);
  EXPECT_EQ(table->format, WeightFormat::fp8_1x32);
  EXPECT_NEAR(std::log2(rms(*table)), 0, 1);
  const auto norm = c.floats("norm.weight", 512), base = c.floats("base", 24);
  for (const float x : *norm) EXPECT_NEAR(x, 1, 0.3);
  for (const float x : *base) EXPECT_NEAR(x, 0, 0.3);
}

TEST(Synthetic, EqualSeedsGiveEqualBytes) {
  const Checkpoint a = make(3), b = make(3), other = make(4);
  // Asked in another order.
  (void)b.matrix("fp4.weight", 96, 512);
  const auto x = a.matrix("fp8.weight", 96, 512), y = b.matrix("fp8.weight", 96, 512),
             z = other.matrix("fp8.weight", 96, 512);
  EXPECT_EQ(std::memcmp(x->codes, y->codes, 96 * 512), 0);
  EXPECT_EQ(std::memcmp(x->scales, y->scales, 3 * 16), 0);
  EXPECT_NE(std::memcmp(x->codes, z->codes, 96 * 512), 0);
  EXPECT_EQ(x->codes, a.matrix("fp8.weight", 96, 512)->codes) << "made twice";
  const auto bf16 = a.matrix("bf16.weight", 96, 512), f32 = a.matrix("f32.weight", 96, 512);
  EXPECT_NE(std::memcmp(bf16->codes, f32->codes, 4096), 0);
}

TEST(Synthetic, ALargeTensorRepeatsOneRegion) {
  const int64_t rows = int64_t{1} << 24;  // 4 GiB of codes over 1 MiB of memory
  auto c = Checkpoint::synthetic("deepseek_v41", {spec("table.weight", rows, 256, Stored::fp8_1x32)}, {1, 1 << 20});
  ASSERT_TRUE(c);
  const auto w = c->matrix("table.weight", rows, 256);
  ASSERT_TRUE(w) << w.error().message;
  EXPECT_EQ(c->payload_bytes(), rows * 264);
  const int64_t period = (1 << 20) / 256;
  std::vector<float> first(256), same(256), next(256);
  dequantize(*w, 5, 0, 256, first.data());
  EXPECT_EQ(std::memcmp(w->codes + 5 * 256, w->codes + (rows - period + 5) * 256, 256), 0);
  dequantize(*w, rows - 1, 0, 256, same.data());
  for (const float x : same) EXPECT_TRUE(std::isfinite(x));
  dequantize(*w, 6, 0, 256, next.data());
  EXPECT_NE(first, next);
}

TEST(Synthetic, AModelLargerThanTheLimitSharesMemory) {
  std::vector<WeightSpec> many;
  for (int i = 0; i < 100; ++i)
    many.push_back(spec("e." + std::to_string(i) + ".weight", 64, 1024, Stored::mxfp4_1x32));
  many.push_back(spec("other.weight", 64, 1024, Stored::bf16));
  // One of each kind: 32 KiB codes, 2 KiB scales, 128 KiB of the other. Ten of the first two fit besides.
  auto c = Checkpoint::synthetic("deepseek_v41", many, {.seed = 1, .max_bytes = (128 + 10 * 34) << 10});
  auto all = Checkpoint::synthetic("deepseek_v41", many, {.seed = 1, .max_bytes = 0});
  ASSERT_TRUE(c && all);
  const auto e = [&](Checkpoint& from, int i) {
    return *from.matrix("e." + std::to_string(i) + ".weight", 64, 1024);
  };
  EXPECT_EQ(e(*c, 3).codes, e(*c, 13).codes);
  EXPECT_EQ(e(*c, 3).scales, e(*c, 93).scales);
  EXPECT_NE(e(*c, 3).codes, e(*c, 4).codes);
  EXPECT_EQ(std::memcmp(e(*c, 13).codes, e(*all, 3).codes, 32768), 0)
      << "sharing changed the bytes of the first ten";
  EXPECT_NE(e(*all, 3).codes, e(*all, 13).codes);
  EXPECT_NE(std::memcmp(e(*all, 3).codes, e(*all, 13).codes, 32768), 0);
  EXPECT_EQ(c->payload_bytes(), all->payload_bytes());
}

}  // namespace
}  // namespace gannet::weights
