#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace gannet::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(int32_t n, uint32_t seed, float spread, bool coarse = false) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) value = coarse ? std::round(normal(random) * 4) / 4 : normal(random);
  return x;
}

// The filters by the book: sort everything, walk.
std::vector<int32_t> naive_filter(const std::vector<float>& x, const SamplingParams& params) {
  std::vector<int32_t> order(x.size());
  for (size_t i = 0; i < x.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto at = [&](int32_t id) { return x[static_cast<size_t>(id)]; };
  std::erase_if(order, [&](int32_t id) {
    return at(id) == -kInf || (params.min_p > 0 && at(id) < log_normal<OneLane>(static_cast<float>(params.min_p)));
  });
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return at(a) > at(b); });
  if (params.top_k > 0 && order.size() > static_cast<size_t>(params.top_k))
    order.resize(static_cast<size_t>(params.top_k));
  if (params.top_p < 1) {
    int64_t total = 0;
    for (const int32_t id : order) total += mass(at(id));
    const auto target =
        std::max<int64_t>(1, static_cast<int64_t>(std::ceil(params.top_p * static_cast<double>(total))));
    int64_t sum = 0;
    size_t n = 0;
    while (n < order.size() && sum < target) sum += mass(at(order[n++]));
    order.resize(n);
  }
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<float> scaled(const std::vector<float>& logits, float temperature) {
  const VocabOps& ops = vocab_ops(this_machine());
  std::vector<float> x(logits.size());
  const auto n = static_cast<int32_t>(logits.size());
  ops.scale(logits.data(), n, logits[static_cast<size_t>(ops.argmax(logits.data(), n))], temperature, x.data());
  return x;
}

TEST(Filters, MatchTheNaiveModel) {
  std::mt19937 random(4);
  int n_cases = 0;
  for (const int32_t n : {1, 2, 7, 100, 3000})
    for (const float spread : {0.0f, 0.3f, 3.0f, 30.0f})
      for (int i = 0; i < 25; ++i) {
        SamplingParams params;
        constexpr double kTopP[] = {1, 0.999999, 0.95, 0.5, 0.1, 1e-6}, kMinP[] = {0, 0, 0.02, 0.3, 1, 1e-30};
        constexpr int32_t kTopK[] = {0, -1, 1, 2, 40, 2999};
        params.top_p = kTopP[random() % 6];
        params.min_p = kMinP[random() % 6];
        params.top_k = kTopK[random() % 6];
        std::vector<float> logits = random_logits(n, static_cast<uint32_t>(random()), spread, i % 2 == 0);
        if (n > 5 && i % 3 == 0) logits[random() % logits.size()] = -kInf;
        const std::vector<float> x = scaled(logits, 0.8f);
        for (const VocabOps& ops : vocab_ops_variants()) {
          if (!ops.fits(this_machine())) continue;
          FilterScratch scratch;
          std::vector<Candidate> candidates;
          filter(x, params, ops, scratch, candidates);
          std::vector<int32_t> got;
          for (const Candidate& c : candidates) got.push_back(c.id);
          ASSERT_EQ(got, naive_filter(x, params)) << ops.name << " n " << n << " top_p " << params.top_p
                                                  << " min_p " << params.min_p << " top_k " << params.top_k;
          ++n_cases;
        }
      }
  EXPECT_GE(n_cases, 500);
}

int32_t sample_one(Sampler& sampler, const std::vector<float>& logits, const SamplingParams& params,
                   uint32_t index) {
  SampleContext context;
  context.token_index = index;
  return sampler.sample(logits, params, context)->token;
}

// Counts draws at many positions and compares with the exact distribution. The sum of (seen - expected)^2 /
// expected has mean d and deviation sqrt(2 d) at d degrees of freedom; the bound is 5 deviations above.
void expect_distribution(const SamplingParams& params, const std::vector<float>& logits, int n_draws) {
  Sampler sampler(static_cast<int32_t>(logits.size()), this_machine());
  const std::vector<float> x = scaled(logits, static_cast<float>(params.temperature));
  const std::vector<int32_t> kept = naive_filter(x, params);
  double total = 0;
  for (const int32_t id : kept) total += std::exp(static_cast<double>(x[static_cast<size_t>(id)]));
  std::vector<int> seen(logits.size());
  for (int i = 0; i < n_draws; ++i)
    ++seen[static_cast<size_t>(sample_one(sampler, logits, params, static_cast<uint32_t>(i)))];
  double chi2 = 0, rare_expected = 0;
  int degrees = -1, rare_seen = 0, n_seen = 0;
  for (const int32_t id : kept) {
    const double expected = n_draws * std::exp(static_cast<double>(x[static_cast<size_t>(id)])) / total;
    const int count = seen[static_cast<size_t>(id)];
    n_seen += count;
    if (expected < 10) {  // too few to be normal: all of these together are one cell
      rare_expected += expected;
      rare_seen += count;
      continue;
    }
    chi2 += (count - expected) * (count - expected) / expected;
    ++degrees;
  }
  if (rare_expected >= 10) {
    chi2 += (rare_seen - rare_expected) * (rare_seen - rare_expected) / rare_expected;
    ++degrees;
  }
  EXPECT_EQ(n_seen, n_draws) << "a token that the filters removed was drawn";
  ASSERT_GE(degrees, 1);
  EXPECT_LE(chi2, degrees + 5 * std::sqrt(2.0 * degrees)) << degrees << " degrees of freedom";
}

TEST(Sampler, DrawsFollowTheDistribution) {
  SamplingParams params;
  params.seed = 20261201;
  expect_distribution(params, random_logits(40, 1, 1.5f), 100'000);   // fewer than one block of 64: the tail
  expect_distribution(params, random_logits(700, 2, 1.0f), 100'000);  // whole blocks
  params.temperature = 0.6;
  params.seed = ~uint64_t{0};
  expect_distribution(params, random_logits(300, 3, 1.0f), 50'000);
  params.top_p = 0.8;
  expect_distribution(params, random_logits(300, 4, 1.0f), 50'000);
  params.top_k = 20;
  params.min_p = 0.05;
  expect_distribution(params, random_logits(3000, 5, 1.0f), 20'000);  // few candidates
  params = {};
  params.temperature = 1.9;
  params.top_k = 200;
  expect_distribution(params, random_logits(3000, 6, 1.0f), 20'000);  // many candidates
}

// Seeds, choices and positions give independent draws: pairs follow the product of the distributions.
TEST(Sampler, NeighbouringKeysAreIndependent) {
  constexpr int n = 4, kDraws = 160'000;
  const std::vector<float> logits{0, 0, 0, 0};
  Sampler sampler(n, this_machine());
  const auto chi2_of = [&](auto&& change) {
    std::vector<int> pairs(n * n);
    for (uint32_t i = 0; i < kDraws; ++i) {
      SamplingParams params;
      params.seed = 99;
      const int32_t a = sample_one(sampler, logits, params, 2 * i);
      uint32_t index = 2 * i;
      change(params, index);
      ++pairs[static_cast<size_t>(a * n + sample_one(sampler, logits, params, index))];
    }
    double chi2 = 0;
    for (const int count : pairs) chi2 += std::pow(count - kDraws / 16.0, 2) / (kDraws / 16.0);
    return chi2;
  };
  const double bound = 15 + 5 * std::sqrt(30.0);
  EXPECT_LE(chi2_of([](SamplingParams&, uint32_t& index) { ++index; }), bound);
  EXPECT_LE(chi2_of([](SamplingParams& params, uint32_t&) { ++params.seed; }), bound);
  EXPECT_LE(chi2_of([](SamplingParams& params, uint32_t&) { ++params.choice; }), bound);
}

// A token's noise is its own: permuting the other tokens' logits cannot change who wins between two.
TEST(Sampler, DrawDependsOnKeyAloneNotOnHistoryOrOrder) {
  constexpr int32_t n = 5000;
  Sampler sampler(n, this_machine()), other(n, this_machine());
  SamplingParams params;
  params.seed = 3;
  params.top_p = 0.9;
  std::vector<std::vector<float>> rows;
  for (uint32_t i = 0; i < 50; ++i) rows.push_back(random_logits(n, 100 + i, 2));
  std::vector<int32_t> forward(50), backward(50);
  for (uint32_t i = 0; i < 50; ++i) forward[i] = sample_one(sampler, rows[i], params, i);
  for (uint32_t i = 50; i-- > 0;) {
    SamplingParams noise;  // another request in between
    noise.seed = i;
    sample_one(other, rows[(i + 7) % 50], noise, i);
    backward[i] = sample_one(other, rows[i], params, i);
  }
  EXPECT_EQ(forward, backward);
}

TEST(Sampler, FiltersOnlyRemove) {  // a wide-open filter changes no draw: the noise of an id stays the same
  constexpr int32_t n = 3000;
  Sampler sampler(n, this_machine());
  SamplingParams open, all;
  all.top_k = n - 1;
  for (uint32_t i = 0; i < 200; ++i) {
    std::vector<float> logits = random_logits(n, i, 1);
    logits[17] = -60;  // never drawn, and what top_k = n - 1 drops
    ASSERT_EQ(sample_one(sampler, logits, open, i), sample_one(sampler, logits, all, i));
  }
}

TEST(Sampler, TinyTemperaturesAreGreedy) {
  const std::vector<float> logits = random_logits(1000, 8, 3);
  Sampler sampler(1000, this_machine());
  const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  for (const double temperature : {0.0, -0.0, 1e-38, 1e-300, 1e-4, 9.9e-4})
    for (uint32_t i = 0; i < 20; ++i) {
      SamplingParams params;
      params.temperature = temperature;
      ASSERT_TRUE(validate(params, 1000).has_value()) << temperature;
      ASSERT_EQ(sample_one(sampler, logits, params, i), best) << temperature;
    }
}

TEST(Sampler, HugeLogitsDoNotOverflow) {
  std::vector<float> logits(200, -3e38f);
  logits[3] = 3e38f;
  logits[150] = -kInf;
  Sampler sampler(200, this_machine());
  SamplingParams params;
  params.temperature = 0.001;
  params.top_logprobs = 2;
  SampleContext context;
  const Sampled got = *sampler.sample(logits, params, context);
  EXPECT_EQ(got.token, 3);
  EXPECT_EQ(got.logprob, 0.0f);
}

TEST(Sampler, BrokenLogitsAreAnErrorNotACrash) {
  Sampler sampler(100, this_machine());
  for (const float value : {-kInf, kInf, std::nanf("")})
    for (const double temperature : {0.0, 1.0}) {
      SamplingParams params;
      params.temperature = temperature;
      EXPECT_FALSE(sampler.sample(std::vector<float>(100, value), params, {}).has_value()) << value;
    }
  std::vector<float> one_good(100, std::nanf(""));  // NaN never wins against a number
  one_good[42] = -5;
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(sample_one(sampler, one_good, {}, i), 42);
}

TEST(Sampler, MaskForbids) {
  constexpr int32_t n = 70;
  Sampler sampler(n, this_machine());
  const std::vector<float> logits = random_logits(n, 1, 1);
  std::vector<uint32_t> mask(3);
  mask[2] = 1u << 5;  // id 69 alone
  SampleContext context;
  context.mask = mask;
  EXPECT_EQ(sampler.sample(logits, {}, context)->token, 69);
  mask[2] = 0;
  EXPECT_FALSE(sampler.sample(logits, {}, context).has_value());
}

TEST(Logprobs, AreTheRawLogSoftmax) {
  constexpr int32_t n = 5000;
  Sampler sampler(n, this_machine());
  std::vector<float> logits = random_logits(n, 9, 3);
  logits[7] = -kInf;
  SamplingParams params;
  params.temperature = 0.5;
  params.top_k = 1;
  params.logit_bias = {{123, 100.0f}};  // moves the choice, not the logprobs
  params.top_logprobs = 20;
  const Sampled got = *sampler.sample(logits, params, {});
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  EXPECT_EQ(got.token, 123);
  EXPECT_NEAR(got.logprob, logits[123] - std::log(sum), 2e-6);
  ASSERT_EQ(got.top.size(), 20u);
  std::vector<float> sorted = logits;
  std::sort(sorted.rbegin(), sorted.rend());
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(logits[static_cast<size_t>(got.top[i].id)], sorted[i]);
    EXPECT_NEAR(got.top[i].logprob, sorted[i] - std::log(sum), 2e-6);
  }
}

TEST(Logprobs, TopListTakesTiesByIdAndSkipsMasked) {
  const std::vector<float> logits{1, -kInf, 2, 1, 2, 1};
  const double log_sum = log_sum_exp(logits, vocab_ops(this_machine()));
  std::vector<int32_t> ids;
  for (const TokenLogprob& entry : top_logprobs(logits, 4, log_sum)) ids.push_back(entry.id);
  EXPECT_EQ(ids, (std::vector<int32_t>{2, 4, 0, 3}));
  EXPECT_EQ(top_logprobs(logits, 20, log_sum).size(), 5u);
  EXPECT_TRUE(top_logprobs(logits, 0, log_sum).empty());
}

}  // namespace
}  // namespace gannet::sample
