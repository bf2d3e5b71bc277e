#include "model/llama/rope_table.h"

#include <cmath>

namespace gannet::llama {
namespace {

// inv_freq of transformers 5.24.0 (torch 2.15.0), heads of 16 channels. It computes in fp32: an exponent of theta
// off by half an ulp moves the power by ln(theta) * 2^-24 of itself, and a few roundings follow.
void expect_frequencies(const Rope& rope, std::vector<float> want) {
  const std::vector<float> got = rope_frequencies(rope, 16, {});
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(std::abs(got[i] / want[i] - 1), (std::log(rope.theta) + 4) * 0x1p-24) << i;
}

TEST(RopeTable, Plain) {
  expect_frequencies({}, {0x1p+0f, 0x1.43d136p-2f, 0x1.99999ap-4f, 0x1.030dc6p-5f, 0x1.47ae14p-7f, 0x1.9e7c7p-9f,
                          0x1.0624dep-10f, 0x1.4b96cp-12f});
}

TEST(RopeTable, Linear) {
  Rope rope;
  rope.scaling = RopeScaling::linear;
  rope.factor = 4;
  expect_frequencies(rope, {0x1p-2f, 0x1.43d136p-4f, 0x1.99999ap-6f, 0x1.030dc6p-7f, 0x1.47ae14p-9f, 0x1.9e7c7p-11f,
                            0x1.0624dep-12f, 0x1.4b96cp-14f});
}

TEST(RopeTable, Llama3) {
  Rope rope;
  rope.theta = 500000;
  rope.scaling = RopeScaling::llama3;
  rope.factor = 8;
  rope.low_freq_factor = 1;
  rope.high_freq_factor = 4;
  rope.original_context = 8192;
  expect_frequencies(rope, {0x1p+0f, 0x1.8d276p-3f, 0x1.34119p-5f, 0x1.ddee9ep-8f, 0x1.132ba4p-11f, 0x1.1f91fp-15f,
                            0x1.be218p-18f, 0x1.5a0f4ep-20f});
}

TEST(RopeTable, Yarn) {
  Rope rope;
  rope.scaling = RopeScaling::yarn;
  rope.factor = 4;
  rope.original_context = 64;
  expect_frequencies(rope, {0x1p+0f, 0x1.e5b9dp-3f, 0x1.999998p-5f, 0x1.030dc6p-7f, 0x1.47ae14p-9f, 0x1.9e7c7p-11f,
                            0x1.0624dep-12f, 0x1.4b96cp-14f});
}

TEST(RopeTable, DivisorsOfTheFile) {
  const std::vector<double> divisors{1, 2, 4, 8, 1, 1, 1, 1};
  const std::vector<float> plain = rope_frequencies({}, 16, {}), divided = rope_frequencies({}, 16, divisors);
  for (size_t i = 0; i < divisors.size(); ++i) EXPECT_EQ(divided[i] * static_cast<float>(divisors[i]), plain[i]);
}

}  // namespace
}  // namespace gannet::llama
