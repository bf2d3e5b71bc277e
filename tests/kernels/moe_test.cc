// Router and experts.
#include <gtest/gtest.h>

#include "kernels/moe_experts.h"
#include "kernels/moe_route.h"
#include "kernels/row_codec.h"
#include "support/kernels.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;

TEST(MoeRoute, MatchesTheFormulaWithTiesToTheLowerExpert) {
  Random random(2);
  for (const RouteScore score : {RouteScore::sqrt_softplus, RouteScore::softmax, RouteScore::sigmoid})
    for (const auto& [T, E, K] : {std::tuple{0, 4, 2}, {1, 1, 1}, {9, 7, 3}, {30, 384, 6}, {5, 8, 8}})
      for (const bool normalise : {true, false}) {
        const MoeRoute op{E, K, score, normalise, 1.5f, 0.75f};
        Matrix logits(T, E, DType::f32, 3);
        std::vector<float> bias, image_bias;
        std::vector<uint8_t> flags;
        for (int64_t t = 0; t < T; ++t) {
          flags.push_back(static_cast<uint8_t>(random.below(2)));
          for (int64_t e = 0; e < E; ++e)
            logits.set(t, e, static_cast<float>(random.below(9) - 4));  // ties are common
        }
        for (int32_t e = 0; e < E; ++e) {
          bias.push_back(static_cast<float>(random.below(3)));
          image_bias.push_back(static_cast<float>(random.below(3)));
        }
        std::vector<int32_t> expert(static_cast<size_t>(T * K));
        std::vector<float> weight(expert.size());
        test::TestExec exec;
        plan(op, this_machine())(
            {logits.view(), bias.data(), image_bias.data(), flags.data(), 1, expert.data(), weight.data()},
            exec.exec);
        for (int64_t t = 0; t < T; ++t) {
          std::vector<double> s;
          double sum = 0;
          for (int64_t e = 0; e < E; ++e) {
            const double z = static_cast<double>(logits.get(t, e)) / 0.75;
            s.push_back(score == RouteScore::sigmoid   ? 1 / (1 + std::exp(-z))
                        : score == RouteScore::softmax ? std::exp(z)
                                                       : std::sqrt(std::log1p(std::exp(z))));
            sum += s.back();
          }
          if (score == RouteScore::softmax)
            for (double& x : s) x /= sum;
          std::vector<int32_t> order(static_cast<size_t>(E));
          for (int32_t e = 0; e < E; ++e) order[static_cast<size_t>(e)] = e;
          const std::vector<float>& b = flags[static_cast<size_t>(t)] != 0 ? image_bias : bias;
          std::stable_sort(order.begin(), order.end(),
                           [&](int32_t x, int32_t y) {  // as fp32, so that ties stay ties
                             return static_cast<float>(s[static_cast<size_t>(x)]) + b[static_cast<size_t>(x)] >
                                    static_cast<float>(s[static_cast<size_t>(y)]) + b[static_cast<size_t>(y)];
                           });
          double chosen = 0;
          for (int32_t k = 0; k < K; ++k) chosen += s[static_cast<size_t>(order[static_cast<size_t>(k)])];
          for (int32_t k = 0; k < K; ++k) {
            const auto at = static_cast<size_t>(t * K + k);
            ASSERT_EQ(expert[at], order[static_cast<size_t>(k)]) << "row " << t << " choice " << k;
            const double want = s[static_cast<size_t>(expert[at])] * 1.5 / (normalise && K > 1 ? chosen : 1.0);
            ASSERT_NEAR(weight[at], want, 0x1p-20 * want);
          }
        }
      }
}

TEST(MoeRoute, LargeLogitsStayFinite) {
  Matrix logits(1, 3);
  for (int64_t e = 0; e < 3; ++e) logits.set(0, e, e == 0 ? 1e4f : -1e4f);
  int32_t expert[2];
  float weight[2];
  test::TestExec exec;
  plan(MoeRoute{3, 2}, this_machine())({logits.view(), nullptr, nullptr, nullptr, 0, expert, weight}, exec.exec);
  EXPECT_EQ(expert[0], 0);
  EXPECT_EQ(expert[1], 1);
  EXPECT_FLOAT_EQ(weight[0], 1);
  EXPECT_EQ(weight[1], 0);
}

// Each row through its expert alone, by the definition, in double.
TEST(MoeExperts, MatchesTheDefinition) {
  constexpr int32_t C = 64, F = 32, E = 3;
  for (const bool quantize : {false, true}) {
    std::vector<test::Weight> kept;
    std::vector<ExpertWeights> experts;
    for (uint64_t e = 0; e < E; ++e) {
      kept.push_back(test::make_weight(WeightFormat::mxfp4_1x32, F, C, e * 3 + 1));
      kept.push_back(test::make_weight(WeightFormat::mxfp4_1x32, F, C, e * 3 + 2));
      kept.push_back(test::make_weight(WeightFormat::mxfp4_1x32, C, F, e * 3 + 3));
    }
    for (size_t e = 0; e < E; ++e)
      experts.push_back({kept[3 * e].view, kept[3 * e + 1].view, kept[3 * e + 2].view});
    const int32_t offset[] = {0, 2, 2, 5};  // the second expert has no row
    Random random(6);
    Matrix x(6, C), out(6, C);
    x.fill(random, 3);
    const float weight[] = {0.5f, 1.25f, 0.75f, 2, 1, 1};
    MoeExperts op{C, F, 0.5f, quantize, WeightFormat::mxfp4_1x32, DType::f32};
    test::TestExec exec;
    plan(op, this_machine())({x.view(), offset, weight, experts, out.view()}, exec.exec);
    ASSERT_TRUE(out.canaries_intact());
    const auto coded = [&](std::vector<float> v) {
      if (!quantize) return v;
      std::vector<std::byte> codes(v.size()), scales(v.size());
      encode_row(RowFormat::fp8_ue8m0, v.data(), static_cast<int32_t>(v.size()), codes.data(), scales.data());
      decode_row(RowFormat::fp8_ue8m0, codes.data(), scales.data(), static_cast<int32_t>(v.size()), v.data());
      return v;
    };
    const auto times = [&](const WeightView& w, const std::vector<float>& v) {
      std::vector<float> y(static_cast<size_t>(w.out)), row(static_cast<size_t>(w.in));
      for (int64_t o = 0; o < w.out; ++o) {
        dequantize(w, o, 0, w.in, row.data());
        double sum = 0;
        for (size_t i = 0; i < v.size(); ++i) sum += static_cast<double>(row[i]) * static_cast<double>(v[i]);
        y[static_cast<size_t>(o)] = static_cast<float>(sum);
      }
      return y;
    };
    for (int64_t t = 0; t < 5; ++t) {
      const ExpertWeights& w = experts[t < 2 ? 0 : 2];
      std::vector<float> row;
      for (int64_t c = 0; c < C; ++c) row.push_back(x.get(t, c));
      const std::vector<float> g = times(w.w1, coded(row)), u = times(w.w3, coded(row));
      std::vector<float> a;
      for (size_t i = 0; i < F; ++i) {
        const double gate = std::min(static_cast<double>(g[i]), 0.5),
                     up = std::clamp(static_cast<double>(u[i]), -0.5, 0.5);
        a.push_back(static_cast<float>(gate / (1 + std::exp(-gate)) * up * static_cast<double>(weight[t])));
      }
      const std::vector<float> want = times(w.w2, coded(a));
      double largest = 0;
      for (const float v : want) largest = std::max(largest, std::fabs(static_cast<double>(v)));
      // A code of the quantised a may flip where rounding differs: 1/14 of one term of 32.
      for (int64_t c = 0; c < C; ++c)
        ASSERT_NEAR(out.get(t, c), want[static_cast<size_t>(c)], largest * (quantize ? 0.02 : 1e-5))
            << t << " " << c;
    }
    for (int64_t c = 0; c < C; ++c) ASSERT_TRUE(std::isnan(out.get(5, c)));  // behind the last row
  }
}

}  // namespace
}  // namespace gannet
