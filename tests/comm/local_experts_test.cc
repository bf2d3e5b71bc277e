#include "comm/local/local_experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace gannet::comm {
namespace {

TEST(LocalExperts, RowsGoToTheirExpertsAndBackInRisingOrder) {
  std::mt19937 random(5);
  for (const auto& [T, E, K] : {std::tuple{0, 3, 2}, {1, 5, 1}, {40, 7, 3}, {3, 8, 8}})
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads, false);
      Arena arena(1 << 20);
      Exec exec{pool, arena};
      LocalExperts parallel(E);
      std::vector<float> x(static_cast<size_t>(T * 4)), weight;
      for (float& v : x) v = static_cast<float>(random() % 1000) / 7;
      std::vector<int32_t> expert;
      for (int32_t t = 0; t < T; ++t) {
        std::vector<int32_t> all(static_cast<size_t>(E));
        for (int32_t e = 0; e < E; ++e) all[static_cast<size_t>(e)] = e;
        std::shuffle(all.begin(), all.end(), random);
        expert.insert(expert.end(), all.begin(), all.begin() + K);
        for (int32_t k = 0; k < K; ++k) weight.push_back(static_cast<float>(t * 100 + all[static_cast<size_t>(k)]));
      }
      const Dispatched sent =
          parallel.dispatch(View(x.data(), DType::f32, {T, 4}), expert.data(), weight.data(), K, exec);
      ASSERT_EQ(sent.offset[E], T * K);
      ASSERT_LE(arena.used_bytes(), parallel.workspace_bytes(T, K, 4));
      // Result of a row at expert e: 10^e scaled so that only one order of addition gives these bits.
      std::vector<float> results(static_cast<size_t>(T * K * 4)), out(static_cast<size_t>(T * 4), -1.0f);
      for (int32_t e = 0; e < E; ++e)
        for (int32_t i = sent.offset[e]; i < sent.offset[e + 1]; ++i) {
          const auto t = static_cast<int32_t>(sent.weight[i]) / 100;
          ASSERT_EQ(static_cast<int32_t>(sent.weight[i]) % 100, e);
          const bool follows = i > sent.offset[e];
          ASSERT_TRUE(!follows || sent.weight[i - 1] < sent.weight[i]);  // in the order of rows
          for (int64_t c = 0; c < 4; ++c) {
            ASSERT_EQ(sent.x.row(i).as<float>()[c], x[static_cast<size_t>(t * 4 + c)]);
            results[static_cast<size_t>(i * 4 + c)] =
                sent.x.row(i).as<float>()[c] * std::pow(7.3f, static_cast<float>(e));
          }
        }
      parallel.combine(sent, View(results.data(), DType::f32, {T * K, 4}), View(out.data(), DType::f32, {T, 4}),
                       exec);
      for (int32_t t = 0; t < T; ++t) {
        std::vector<int32_t> mine(expert.begin() + t * K, expert.begin() + (t + 1) * K);
        std::sort(mine.begin(), mine.end());
        for (int64_t c = 0; c < 4; ++c) {
          float want = 0;
          for (size_t k = 0; k < mine.size(); ++k) {
            const float y = x[static_cast<size_t>(t * 4 + c)] * std::pow(7.3f, static_cast<float>(mine[k]));
            want = k == 0 ? y : want + y;
          }
          ASSERT_EQ(out[static_cast<size_t>(t * 4 + c)], want);
        }
      }
    }
}

}  // namespace
}  // namespace gannet::comm
