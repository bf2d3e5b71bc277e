#include "kernels/hyper_connection.h"

#include <gtest/gtest.h>

#include "support/kernels.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;

const double kLogits[] = {0, 1, 2, 3, 1, 0, 1, 0, 2, 0, 0, 2, 0, 0, 3, 0};
const double kComb[] = {0.0420021, 0.2838135, 0.1321142, 0.5420692, 0.3881104, 0.3549271, 0.1652178, 0.0917437,
                        0.4910136, 0.1651914, 0.0282887, 0.3155055, 0.0788730, 0.1960671, 0.6743784, 0.0506806};

// Published figures, computed in fp32 and printed to seven digits: the direction of the first step and of the
// matrix show in them.
TEST(Sinkhorn, ReleasedFigures) {
  double comb[16];
  sinkhorn<double>(kLogits, 4, 20, 1e-6, comb);
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(comb[i], kComb[i], 2e-7) << i;
  float logits[16], single[16];
  for (int i = 0; i < 16; ++i) logits[i] = static_cast<float>(kLogits[i]);
  sinkhorn<float>(logits, 4, 20, 1e-6f, single);
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(single[i], kComb[i], 1e-6) << i;
}

// The same step by step, over a matrix of vectors.
std::vector<std::vector<double>> plain_sinkhorn(const double* logits, int iters, double eps) {
  std::vector<std::vector<double>> c(4, std::vector<double>(4));
  for (size_t j = 0; j < 4; ++j) {
    double sum = 0;
    for (size_t k = 0; k < 4; ++k) sum += std::exp(logits[4 * j + k]);
    for (size_t k = 0; k < 4; ++k) c[j][k] = std::exp(logits[4 * j + k]) / sum + eps;
  }
  for (int i = 0; i < iters; ++i) {
    for (size_t j = 0; i > 0 && j < 4; ++j) {
      double sum = eps;
      for (size_t k = 0; k < 4; ++k) sum += c[j][k];
      for (size_t k = 0; k < 4; ++k) c[j][k] /= sum;
    }
    for (size_t k = 0; k < 4; ++k) {
      double sum = eps;
      for (size_t j = 0; j < 4; ++j) sum += c[j][k];
      for (size_t j = 0; j < 4; ++j) c[j][k] /= sum;
    }
  }
  return c;
}

// Logits that converge slowly, so that one step more or fewer and the epsilon show far above rounding.
TEST(Sinkhorn, CountAndEpsilonAreTheConfigs) {
  double slow[16];
  for (int i = 0; i < 16; ++i) slow[i] = 6 * kLogits[i];
  const auto gap = [&](int iters, double eps) {
    double comb[16], worst = 0;
    sinkhorn<double>(slow, 4, 20, 1e-6, comb);
    const auto other = plain_sinkhorn(slow, iters, eps);
    for (size_t i = 0; i < 16; ++i) worst = std::max(worst, std::fabs(comb[i] - other[i / 4][i % 4]));
    return worst;
  };
  EXPECT_LT(gap(20, 1e-6), 1e-12);
  EXPECT_GT(gap(19, 1e-6), 1e-6);
  EXPECT_GT(gap(21, 1e-6), 1e-6);
  EXPECT_GT(gap(20, 0), 1e-7);
  EXPECT_GT(gap(20, 1e-5), 1e-7);
}

struct MixCase {
  int32_t T, S, C;
  DType type;
  Matrix h, product, pre, post, comb;
  std::vector<float> scale, base;
  MixCase(int32_t t, int32_t s, int32_t c, DType dtype, float size, uint64_t seed)
      : T(t),
        S(s),
        C(c),
        type(dtype),
        h(t, s * c, dtype),
        product(t, (2 + s) * s, DType::f32),
        pre(t, s),
        post(t, s),
        comb(t, s * s) {
    Random random(seed);
    h.fill(random, size);
    product.fill(random, size * 2);
    for (int i = 0; i < 3; ++i) scale.push_back(1 + random.unit() / 4);
    for (int i = 0; i < (2 + s) * s; ++i) base.push_back(random.unit());
  }
  void run(const Variant<HcMix, HcMixArgs>& v, const HcMix& op) {
    test::TestExec exec;
    v.run(op,
          {View(h.at(0, 0), type, {T, S, C}), product.view(), scale.data(), base.data(), pre.view(), post.view(),
           View(comb.at(0, 0), DType::f32, {T, S, S})},
          exec.exec);
  }
};

TEST(HcMix, EveryVariantMatchesRef) {
  for (const auto& v : hc_mix_cpu())
    for (const auto& [T, S, C] : {std::tuple{0, 4, 16}, {1, 4, 300}, {7, 2, 33}, {3, 8, 64}, {2, 1, 5}})
      for (const DType type : {DType::f32, DType::bf16}) {
        const HcMix op{S, C, 20, 1e-6f, 1e-20f, type};
        MixCase got(T, S, C, type, 1, 3), want(T, S, C, type, 1, 3);
        got.run(v, op);
        want.run(hc_mix_ref()[0], op);
        for (const auto& [a, b] :
             {std::pair{&got.pre, &want.pre}, {&got.post, &want.post}, {&got.comb, &want.comb}}) {
          ASSERT_TRUE(a->canaries_intact());
          for (int64_t r = 0; r < T; ++r)
            for (int64_t i = 0; i < a->width(); ++i) ASSERT_TRUE(test::close(a->get(r, i), b->get(r, i), 0x1p-18));
        }
      }
}

// With streams of 1e-8 the statistic is far below 1e-6: an epsilon of that size would erase the coefficients.
TEST(HcMix, StatisticOfTinyStreams) {
  for (const auto* variants : {"cpu", "ref"}) {
    const auto& v = std::string_view(variants) == "cpu" ? hc_mix_cpu()[0] : hc_mix_ref()[0];
    MixCase tiny(3, 4, 64, DType::f32, 1e-8f, 9), ordinary(3, 4, 64, DType::f32, 1, 9);
    tiny.run(v, {4, 64, 20, 1e-6f, 1e-20f, DType::f32});
    ordinary.run(v, {4, 64, 20, 1e-6f, 1e-20f, DType::f32});
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t i = 0; i < 16; ++i)
        ASSERT_NEAR(tiny.comb.get(r, i), ordinary.comb.get(r, i), 1e-3);  // 1e-20 / 1e-16
  }
}

TEST(HcMix, HcEpsIsInPreAndNotInPost) {
  for (const auto& v : {hc_mix_cpu()[0], hc_mix_ref()[0]}) {
    MixCase with(2, 4, 32, DType::f32, 1, 4), without(2, 4, 32, DType::f32, 1, 4);
    with.run(v, {4, 32, 20, 0.125f, 1e-20f, DType::f32});
    without.run(v, {4, 32, 20, 0.0f, 1e-20f, DType::f32});
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t s = 0; s < 4; ++s) {
        EXPECT_NEAR(with.pre.get(r, s) - without.pre.get(r, s), 0.125f, 1e-6f);
        EXPECT_EQ(with.post.get(r, s), without.post.get(r, s));
      }
  }
}

TEST(HcCollapseAndExpand, EveryVariantMatchesRefAndRowsStandAlone) {
  for (const auto& [T, S, C] : {std::tuple{1, 4, 7}, {5, 4, 300}, {3, 2, 256}, {2, 8, 19}})
    for (const DType type : {DType::f32, DType::bf16}) {
      Random random(11);
      Matrix h(T, S * C, type), pre(T, S), post(T, S), comb(T, S * S), y(T, C, type);
      for (Matrix* m : {&h, &pre, &post, &comb, &y}) m->fill(random);
      Matrix want(T, C, type), got(T, C, type), want_h(T, S * C, type), got_h(T, S * C, type);
      const auto streams = [&](Matrix& m) { return View(m.at(0, 0), type, {T, S, C}); };
      const View mix(comb.at(0, 0), DType::f32, {T, S, S});
      test::TestExec exec;
      hc_collapse_ref()[0].run({S, C, type}, {streams(h), pre.view(), want.view()}, exec.exec);
      hc_collapse_cpu()[0].run({S, C, type}, {streams(h), pre.view(), got.view()}, exec.exec);
      for (Matrix* m : {&want_h, &got_h})
        for (int64_t r = 0; r < T; ++r)
          for (int64_t i = 0; i < S * C; ++i) m->set(r, i, h.get(r, i));
      hc_expand_ref()[0].run({S, C, type}, {y.view(), post.view(), mix, streams(want_h)}, exec.exec);
      hc_expand_cpu()[0].run({S, C, type}, {y.view(), post.view(), mix, streams(got_h)}, exec.exec);
      ASSERT_TRUE(got.canaries_intact() && got_h.canaries_intact());
      // S + 1 products of magnitude at most 1, each rounded, then summed.
      const double sums = 2.0 * (S + 1) * (S + 1) * 0x1p-24;
      for (int64_t r = 0; r < T; ++r) {
        for (int64_t i = 0; i < C; ++i)
          ASSERT_TRUE(test::close(got.get(r, i), want.get(r, i), sums + test::ulp(want.get(r, i), type)));
        for (int64_t i = 0; i < S * C; ++i)
          ASSERT_TRUE(test::close(got_h.get(r, i), want_h.get(r, i), sums + test::ulp(want_h.get(r, i), type)));
      }
    }
}

// comb is used transposed: a matrix with one entry moves stream j to stream k.
TEST(HcExpand, StreamJGoesToStreamK) {
  for (const auto& v : {hc_expand_cpu()[0], hc_expand_ref()[0]}) {
    Matrix h(1, 3 * 2), post(1, 3), comb(1, 9), y(1, 2);
    for (int64_t i = 0; i < 6; ++i) h.set(0, i, static_cast<float>(i + 1));
    for (int64_t i = 0; i < 9; ++i) comb.set(0, i, i == 1 ? 1.0f : 0.0f);  // j = 0, k = 1
    for (int64_t i = 0; i < 3; ++i) post.set(0, i, i == 2 ? 10.0f : 0.0f);
    y.set(0, 0, 1);
    y.set(0, 1, 2);
    test::TestExec exec;
    v.run({3, 2, DType::f32},
          {y.view(), post.view(), View(comb.at(0, 0), DType::f32, {1, 3, 3}),
           View(h.at(0, 0), DType::f32, {1, 3, 2})},
          exec.exec);
    const float want[] = {0, 0, 1, 2, 10, 20};
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(h.get(0, i), want[i]) << v.name;
  }
}

}  // namespace
}  // namespace gannet
