#include "sample/vocab_ops.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace gannet::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const VocabOps& scalar() { return vocab_ops_variants().back(); }

// Coarse values, so that ties happen; some masked, and NaN where asked.
std::vector<float> row(int32_t n, uint32_t seed, bool with_nan) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) {
    value = static_cast<float>(static_cast<int>(random() % 200)) * 0.125f - 20;
    if (random() % 13 == 0) value = -kInf;
    if (with_nan && random() % 17 == 0) value = std::nanf("");
  }
  return x;
}

TEST(VocabOps, EveryVariantMatchesTheScalarOne) {
  int n_tested = 0;
  for (const VocabOps& ops : vocab_ops_variants()) {
    if (!ops.fits(this_machine())) continue;
    ++n_tested;
    for (const int32_t n : {1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 1000, 49152, 49153})
      for (const uint32_t seed : {1u, 2u, 3u}) {
        const std::vector<float> x = row(n, seed, seed == 3);
        const int32_t best = ops.argmax(x.data(), n);
        ASSERT_EQ(best, scalar().argmax(x.data(), n)) << ops.name << " " << n;
        if (best < 0) continue;
        const float largest = x[static_cast<size_t>(best)];
        std::vector<float> got(x.size() + 1, 777), want(x.size() + 1, 777);
        ops.scale(x.data(), n, largest, 0.7f, got.data());
        scalar().scale(x.data(), n, largest, 0.7f, want.data());
        ASSERT_EQ(got, want) << ops.name << " " << n;
        ASSERT_EQ(ops.total_mass(x.data(), n, largest), scalar().total_mass(x.data(), n, largest)) << ops.name << n;
        const NoiseKey key = sample_key(seed * 1000003u, 2, static_cast<uint32_t>(n));
        ASSERT_EQ(ops.noisy_argmax(got.data(), n, key), scalar().noisy_argmax(want.data(), n, key))
            << ops.name << n;
        ops.exp(got.data(), n, got.data());
        scalar().exp(want.data(), n, want.data());
        ASSERT_EQ(got, want) << ops.name << " " << n;
        ASSERT_EQ(got.back(), 777);
      }
  }
  EXPECT_GE(n_tested, 1);
}

// The pass over whole blocks skips noise where it cannot matter; the noise itself must be the same for every id.
TEST(VocabOps, NoiseIsTheSameForEveryId) {
  constexpr int32_t n = 640;
  for (const VocabOps& ops : vocab_ops_variants()) {
    if (!ops.fits(this_machine())) continue;
    const NoiseKey key = sample_key(5, 0, 9);
    for (int32_t id = 0; id < n; ++id) {  // two rivals whose distance is just the difference of their noise
      const auto rival = static_cast<int32_t>((id * 37 + 11) % n);
      if (rival == id) continue;
      std::vector<float> x(n, -kInf);
      const float g = gumbel(key, static_cast<uint32_t>(id)), other = gumbel(key, static_cast<uint32_t>(rival));
      x[static_cast<size_t>(id)] = -10;
      x[static_cast<size_t>(rival)] = -10 + (g - other) * 1.01f;
      const bool rival_wins = x[static_cast<size_t>(rival)] + other > -10 + g;
      ASSERT_EQ(ops.noisy_argmax(x.data(), n, key), rival_wins ? rival : id) << ops.name << " " << id;
    }
  }
}

TEST(VocabOps, NothingToChooseIsMinusOne) {
  const std::vector<float> masked(100, -kInf), broken(100, std::nanf(""));
  for (const VocabOps& ops : vocab_ops_variants()) {
    if (!ops.fits(this_machine())) continue;
    EXPECT_EQ(ops.argmax(masked.data(), 100), -1) << ops.name;
    EXPECT_EQ(ops.argmax(broken.data(), 100), -1) << ops.name;
    EXPECT_EQ(ops.noisy_argmax(masked.data(), 100, sample_key(1, 0, 0)), -1) << ops.name;
  }
}

TEST(VocabOps, TiesGoToTheLowerId) {
  std::vector<float> x(300, 1.0f);
  x[5] = 0;
  for (const VocabOps& ops : vocab_ops_variants()) {
    if (!ops.fits(this_machine())) continue;
    EXPECT_EQ(ops.argmax(x.data(), 300), 0) << ops.name;
  }
  x[0] = 0.5f;
  x[16] = x[290] = 2;
  for (const VocabOps& ops : vocab_ops_variants()) {
    if (!ops.fits(this_machine())) continue;
    EXPECT_EQ(ops.argmax(x.data(), 300), 16) << ops.name;
  }
}

}  // namespace
}  // namespace gannet::sample
