#include "sample/random.h"

#include <cmath>
#include <set>
#include <vector>

#include "sample/vocab_ops.h"

namespace gannet::sample {
namespace {

std::vector<uint32_t> philox_of(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1) {
  const auto r = philox<OneLane>({{c0, c1, c2, c3}}, k0, k1);
  return {r.word[0], r.word[1], r.word[2], r.word[3]};
}

// Published known answers of Philox 4x32-10 (Random123's kat_vectors).
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox_of(0, 0, 0, 0, 0, 0), (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t f = 0xffffffff;
  EXPECT_EQ(philox_of(f, f, f, f, f, f), (std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_of(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0),
            (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, UniformNeverLeavesTheOpenInterval) {
  for (const uint32_t h : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffff7fu, 0xffffff80u, 0xffffffffu}) {
    const float v = unit_interval<OneLane>(h);
    EXPECT_GE(v, 0x1p-33f);
    EXPECT_LE(v, 1 - 0x1p-24f);
    const float g = gumbel<OneLane>(h);
    EXPECT_TRUE(g >= -2.82f && g <= kLargestGumbel) << h << " " << g;
  }
  EXPECT_EQ(unit_interval<OneLane>(0), 0x1p-33f);
  EXPECT_EQ(unit_interval<OneLane>(0xffffffffu), 1 - 0x1p-24f);
  EXPECT_EQ(unit_interval<OneLane>(0x80000000u), 0.5f);
}

TEST(Random, LogarithmsAndExpWithinTheirUlps) {
  const auto ulps = [](float got, double want) {
    const float w = static_cast<float>(want);
    return std::abs(static_cast<double>(got) - want) / (std::nextafter(std::abs(w), 1e30f) - std::abs(w));
  };
  uint32_t h = 12345;
  double worst_log = 0, worst_minus = 0, worst_exp = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    h = h * 1664525u + 1013904223u;
    const float any = std::bit_cast<float>(0x00800000u + h % (0x7F800000u - 0x00800000u));  // every normal size
    worst_log = std::max(worst_log, ulps(log_normal<OneLane>(any), std::log(static_cast<double>(any))));
    const float v = unit_interval<OneLane>(i % 2 == 0 ? h : h >> (i % 30));
    worst_minus = std::max(worst_minus, ulps(log_one_minus<OneLane>(v), std::log1p(-static_cast<double>(v))));
    const float x = -static_cast<float>(h >> 8) * (64.0f / 16777216.0f);
    worst_exp = std::max(worst_exp, ulps(exp_negative<OneLane>(x), std::exp(static_cast<double>(x))));
  }
  EXPECT_LE(worst_log, 2.0);
  EXPECT_LE(worst_minus, 4.0);
  EXPECT_LE(worst_exp, 2.0);
  EXPECT_EQ(exp_negative<OneLane>(0), 1.0f);
  EXPECT_EQ(log_normal<OneLane>(1), 0.0f);
  EXPECT_EQ(exp_negative<OneLane>(-std::numeric_limits<float>::infinity()), exp_negative<OneLane>(-64));
  EXPECT_EQ(exp_negative<OneLane>(std::nanf("")), exp_negative<OneLane>(-64));
}

TEST(Random, MassIsTheRoundedProbability) {
  EXPECT_EQ(mass(0), int64_t{1} << kMassBits);
  EXPECT_EQ(mass(-std::numeric_limits<float>::infinity()), 0);
  for (float x = 0; x > -40; x -= 0.37f) {
    const double want = std::ldexp(static_cast<double>(exp_negative<OneLane>(x)), kMassBits);
    EXPECT_EQ(mass(x), static_cast<int64_t>(std::nearbyint(want))) << x;
  }
}

// Mean and variance of the standard Gumbel distribution: Euler's constant and pi^2 / 6. Fixed seed; 5 standard
// errors.
TEST(Random, GumbelHasItsMoments) {
  constexpr int kDraws = 1'000'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double g = gumbel(sample_key(77, 0, static_cast<uint32_t>(i / 1000)), static_cast<uint32_t>(i % 1000));
    sum += g;
    squares += g * g;
  }
  const double mean = sum / kDraws, variance = squares / kDraws - mean * mean;
  EXPECT_NEAR(mean, 0.5772157, 5 * 1.2825 / std::sqrt(kDraws));
  EXPECT_NEAR(variance, 1.6449341, 5 * 1.6449341 * std::sqrt(4.4 / kDraws));  // kurtosis 5.4
}

TEST(Random, EveryPartOfTheKeyMatters) {
  std::set<uint32_t> seen;
  int n = 0;
  const auto draw = [&](const NoiseKey& key, uint32_t id) {
    seen.insert(noise_bits(key, id));
    ++n;
  };
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}})
    for (const uint32_t choice : {0u, 1u, 7u})
      for (const uint32_t position : {0u, 1u, 1000000u})
        for (const uint32_t id : {0u, 1u, 15u, 16u, 63u, 64u, 129279u}) {
          draw(sample_key(seed, choice, position), id);
          for (const uint64_t request : {uint64_t{5}, uint64_t{6}, uint64_t{5} << 32})
            for (const Stream stream : {Stream::accept, Stream::draft})
              for (const uint32_t slot : {0u, 1u, 5u})
                draw(block_key(stream, seed, request, choice, position, slot), id);
        }
  // Chance alone makes n^2 / 2^33 = 0.003 pairs equal.
  EXPECT_EQ(seen.size(), static_cast<size_t>(n));
}

// Ids of one row never share a word.
TEST(Random, IdsMapToDistinctWords) {
  std::set<std::pair<uint32_t, uint32_t>> places;
  for (uint32_t id = 0; id < 4096; ++id) places.insert({(id >> 6) << 4 | (id & 15u), id >> 4 & 3u});
  EXPECT_EQ(places.size(), 4096u);
}

}  // namespace
}  // namespace gannet::sample
