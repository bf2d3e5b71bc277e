#include "kernels/engram.h"

#include <gtest/gtest.h>

#include "v41_cache.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;

// Rows of tokens with dead ones, in steps of any size, against a plain list.
TEST(EngramHash, StepsAgreeWithTheWholeText) {
  Random random(8);
  constexpr int32_t kNgram = 4, kHeads = 2, kColumns = (kNgram - 1) * kHeads, kPad = 2;
  const uint64_t multiplier[kNgram] = {76632096046245, 4839876093313, 35959672319349, 73987337458391};
  const uint64_t prime[kColumns] = {17, 19, 23, 29, 31, 37}, offset[kColumns] = {0, 17, 36, 59, 88, 119};
  const auto ids_op = plan(EngramIds{50}, this_machine());
  const auto hash_op = plan(EngramHash{kNgram, kHeads, kPad}, this_machine());
  const auto commit = plan(CommitRing{1, RowFormat::i32}, this_machine());
  for (int round = 0; round < 20; ++round) {
    constexpr int32_t n = 40;
    std::vector<int32_t> token, map;
    std::vector<uint8_t> flags;
    for (int32_t i = 0; i < 50; ++i) map.push_back(random.below(30));
    for (int32_t i = 0; i < n; ++i) {
      token.push_back(random.below(50));
      flags.push_back(random.below(5) == 0 ? 4 : 0);
    }
    test::Rings rings(RowFormat::i32, 1, 1, 6);
    test::TestExec exec(1);
    for (int32_t done = 0, step_rows = 0; done < n; done += step_rows) {
      step_rows = std::min(n - done, 1 + random.below(9));
      std::vector<int32_t> pos, seq(static_cast<size_t>(step_rows), 0);
      for (int32_t i = 0; i < step_rows; ++i) pos.push_back(done + i);
      const int32_t zero = 0;
      const StepRows ids = make_step_rows(exec.arena, step_rows, 1, RowFormat::i32);
      ids_op({map.data(), token.data() + done, pos.data(), flags.data() + done, 4, ids}, exec.exec);
      std::vector<int64_t> rows(static_cast<size_t>(step_rows) * kColumns);
      hash_op({{ids, rings.rows, &zero, &done},
               seq.data(),
               pos.data(),
               step_rows,
               multiplier,
               prime,
               offset,
               rows.data()},
              exec.exec);
      commit({ids, seq.data(), &done, &step_rows, rings.rows}, exec.exec);
      for (int32_t i = 0; i < step_rows; ++i) {
        uint64_t mixed = 0;
        bool blocked = false;
        for (int32_t back = 0; back < kNgram; ++back) {
          const int32_t p = done + i - back;
          blocked = blocked || p < 0 || flags[static_cast<size_t>(p)] != 0;  // latched
          mixed ^= (blocked ? uint64_t{kPad}
                            : static_cast<uint64_t>(map[static_cast<size_t>(token[static_cast<size_t>(p)])])) *
                   multiplier[back];
          for (int32_t e = 0; back > 0 && e < kHeads; ++e) {
            const int32_t column = (back - 1) * kHeads + e;
            ASSERT_EQ(rows[static_cast<size_t>(i * kColumns + column)],
                      static_cast<int64_t>(mixed % prime[column] + offset[column]));
          }
        }
      }
    }
  }
}

TEST(EngramGather, RowsOfTheTableSideBySide) {
  const test::Weight table = test::make_weight(WeightFormat::fp8_1x32, 20, 64, 3, 5);
  const int64_t ids[] = {3, 19, 0, 7, 7, 1};
  const int32_t index[] = {2, 0};
  Matrix out(2, 128, DType::bf16, 3);
  test::TestExec exec(2);
  plan(EngramGather{2, 64, WeightFormat::fp8_1x32, DType::bf16}, this_machine())(
      {table.view, ids, index, out.view()}, exec.exec);
  const int64_t want[2][2] = {{7, 1}, {3, 19}};
  for (int64_t t = 0; t < 2; ++t)
    for (int64_t c = 0; c < 128; ++c) {
      float row[64];
      dequantize(table.view, want[t][c / 64], 0, 64, row);
      ASSERT_EQ(out.get(t, c), row[c % 64]);
    }
  EXPECT_TRUE(out.canaries_intact());
}

struct GateCase {
  Matrix kv, h;
  std::vector<float> q, k;
  std::vector<uint8_t> flags;
  GateCase(int32_t T, int32_t S, int32_t C, float size)
      : kv(T, (S + 1) * C), h(T, S * C), flags(static_cast<size_t>(T), 0) {
    Random random(12);
    kv.fill(random, size);
    h.fill(random, size);
    for (int32_t i = 0; i < S * C; ++i) {
      q.push_back(random.unit());
      k.push_back(random.unit());
    }
  }
  void run(int32_t S, int32_t C) {
    test::TestExec exec(2);
    plan(EngramGate{S, C, 1e-20f, DType::f32}, this_machine())(
        {kv.view(), q.data(), k.data(), flags.data(), 1, View(h.at(0, 0), DType::f32, {h.rows(), S, C})},
        exec.exec);
  }
};

TEST(EngramGate, MatchesTheFormulaAndClosesOnDeadRows) {
  constexpr int32_t T = 3, S = 2, C = 40;
  GateCase c(T, S, C, 1), before(T, S, C, 1);
  c.flags[1] = 1;
  c.run(S, C);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t s = 0; s < S; ++s) {
      double hh = 0, kk = 0, dot = 0;
      for (int64_t i = 0; i < C; ++i) {
        const double x = before.h.get(t, s * C + i), key = before.kv.get(t, s * C + i);
        hh += x * x / C;
        kk += key * key / C;
        dot += x * key * static_cast<double>(c.q[static_cast<size_t>(s * C + i)]) *
               static_cast<double>(c.k[static_cast<size_t>(s * C + i)]);
      }
      dot /= std::sqrt(hh) * std::sqrt(kk) * std::sqrt(static_cast<double>(C));
      const double z = std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6)), dot),
                   g = t == 1 ? 0 : 1 / (1 + std::exp(-z));
      for (int64_t i = 0; i < C; ++i)
        ASSERT_NEAR(c.h.get(t, s * C + i),
                    before.h.get(t, s * C + i) + g * static_cast<double>(before.kv.get(t, S * C + i)), 1e-6);
    }
}

// A zero key: the dot product is +0, and its floor of 1e-6 counts as positive.
TEST(EngramGate, ZeroCountsAsPositive) {
  GateCase c(1, 1, 32, 1), before(1, 1, 32, 1);
  for (int64_t i = 0; i < 32; ++i) c.kv.set(0, i, 0);
  c.run(1, 32);
  for (int64_t i = 0; i < 32; ++i)
    ASSERT_NEAR(c.h.get(0, i) - before.h.get(0, i), 0.50025 * static_cast<double>(before.kv.get(0, 32 + i)), 1e-6);
}

// Streams of 1e-9: the norm's epsilon is 1e-20, not 1e-6, so the gate is that of ordinary streams.
TEST(EngramGate, TinyStreamsKeepTheirGate) {
  GateCase tiny(1, 1, 32, 1e-9f), ordinary(1, 1, 32, 1), tiny0(1, 1, 32, 1e-9f), ordinary0(1, 1, 32, 1);
  tiny.run(1, 32);
  ordinary.run(1, 32);
  for (int64_t i = 0; i < 32; ++i)
    ASSERT_NEAR((tiny.h.get(0, i) - tiny0.h.get(0, i)) * 1e9, ordinary.h.get(0, i) - ordinary0.h.get(0, i), 0.02);
}

}  // namespace
}  // namespace gannet
