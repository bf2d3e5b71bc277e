// Recent rows and the ring, the compressor's ops, the order of decoder rows.
#include "kernels/window.h"

#include <gtest/gtest.h>

#include "kernels/decoder_order.h"
#include "v41_cache.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;

// Steps of any size against a list of all rows: each position within the capacity reads back, from the step or the
// ring.
TEST(Window, RingKeepsTheLastRows) {
  Random random(3);
  constexpr int32_t kWidth = 32, kCapacity = 7;
  test::Rings rings(RowFormat::f32, kWidth, 2, kCapacity);
  const auto write = plan(WriteStepRows{kWidth, RowFormat::f32, DType::f32}, this_machine());
  const auto commit = plan(CommitRing{kWidth, RowFormat::f32}, this_machine());
  const auto clear = plan(ClearTags{}, this_machine());
  std::vector<std::vector<float>> rows[2];
  for (int round = 0; round < 60; ++round) {
    test::TestExec exec(1);
    std::vector<int32_t> seq, pos, first_row, first_pos, n_rows;
    std::vector<std::vector<float>> added;
    for (int32_t s = 0; s < 2; ++s) {
      first_row.push_back(static_cast<int32_t>(seq.size()));
      first_pos.push_back(static_cast<int32_t>(rows[s].size()));
      n_rows.push_back(1 + random.below(round % 5 == 0 ? 20 : 4));
      for (int32_t i = 0; i < n_rows.back(); ++i) {
        seq.push_back(s);
        pos.push_back(first_pos.back() + i);
        std::vector<float> row(kWidth);
        for (float& x : row) x = random.unit();
        rows[s].push_back(row);
      }
    }
    const auto T = static_cast<int32_t>(seq.size());
    Matrix x(T, kWidth);
    for (int32_t t = 0; t < T; ++t)
      for (int32_t c = 0; c < kWidth; ++c)
        x.set(t, c,
              rows[seq[static_cast<size_t>(t)]][static_cast<size_t>(pos[static_cast<size_t>(t)])]
                  [static_cast<size_t>(c)]);
    const StepRows step = make_step_rows(exec.arena, T, kWidth, RowFormat::f32);
    clear({step}, exec.exec);
    write({x.view(), nullptr, pos.data(), step}, exec.exec);
    const RecentRows recent{step, rings.rows, first_row.data(), first_pos.data()};
    for (int32_t s = 0; s < 2; ++s)
      for (auto p = std::max(0, first_pos[static_cast<size_t>(s)] - kCapacity);
           p < static_cast<int32_t>(rows[s].size()); ++p)
        ASSERT_EQ(std::memcmp(recent_row(recent, s, p).codes, rows[s][static_cast<size_t>(p)].data(), kWidth * 4),
                  0)
            << p;
    commit({step, seq.data(), first_pos.data(), n_rows.data(), rings.rows}, exec.exec);
  }
}

// Rows that a step leaves out are neither committed nor taken for others.
TEST(WindowDeathTest, RowsNotWrittenAreNotThere) {
  test::TestExec exec(1);
  test::Rings rings(RowFormat::f32, 32, 1, 8);
  const std::vector<int32_t> seq(4, 0), index = {3, 1}, pos = {3, 1}, first = {0}, n = {4};
  Matrix x(2, 32);
  x.set(0, 0, 1);
  const StepRows step = make_step_rows(exec.arena, 4, 32, RowFormat::f32);
  plan(ClearTags{}, this_machine())({step}, exec.exec);
  plan(WriteStepRows{32, RowFormat::f32, DType::f32}, this_machine())({x.view(), index.data(), pos.data(), step},
                                                                      exec.exec);
  plan(CommitRing{32, RowFormat::f32}, this_machine())({step, seq.data(), first.data(), n.data(), rings.rows},
                                                       exec.exec);
  EXPECT_EQ(rings.tag(0, 1), 1);
  EXPECT_EQ(rings.tag(0, 3), 3);
  EXPECT_EQ(rings.tag(0, 2), -1);
  EXPECT_DEATH(recent_row({step, rings.rows, first.data(), first.data()}, 0, 2), "position 2");
}

TEST(Compressor, PoolsPairsAcrossSteps) {
  Random random(9);
  constexpr int32_t D = 5;
  test::Rings rings(RowFormat::f32, 2 * D, 1, 4);
  test::TestExec exec(2);
  Matrix pairs(5, 2 * D), out(4, D);
  pairs.fill(random, 4);
  const std::vector<int32_t> zero = {0}, one = {1}, n1 = {1}, n4 = {4}, seq(4, 0), pos0 = {0}, pos = {1, 2, 3, 4};
  const auto write = plan(WriteStepRows{2 * D, RowFormat::f32, DType::f32}, this_machine());
  const auto clear = plan(ClearTags{}, this_machine());
  const StepRows first = make_step_rows(exec.arena, 1, 2 * D, RowFormat::f32);
  clear({first}, exec.exec);
  write({pairs.view().rows(0, 1), nullptr, pos0.data(), first}, exec.exec);
  plan(CommitRing{2 * D, RowFormat::f32}, this_machine())({first, seq.data(), zero.data(), n1.data(), rings.rows},
                                                          exec.exec);
  const StepRows rest = make_step_rows(exec.arena, 4, 2 * D, RowFormat::f32);
  clear({rest}, exec.exec);
  write({pairs.view().rows(1, 4), nullptr, pos.data(), rest}, exec.exec);
  plan(PoolRows{D, 2, DType::f32}, this_machine())(
      {{rest, rings.rows, zero.data(), one.data()}, seq.data(), pos.data(), out.view()}, exec.exec);
  for (const int32_t t : {0, 2}) {  // positions 1 and 3 close pairs (0, 1) and (2, 3)
    const int64_t a = t, b = t + 1;
    for (int64_t c = 0; c < D; ++c) {
      const double w =
          1 / (1 + std::exp(static_cast<double>(pairs.get(b, D + c)) - static_cast<double>(pairs.get(a, D + c))));
      EXPECT_NEAR(out.get(t, c), w * pairs.get(a, c) + (1 - w) * pairs.get(b, c), 1e-6);
      EXPECT_EQ(out.get(t + 1, c), 0);
    }
  }
  int32_t start[4];
  plan(GroupStart{2}, this_machine())({pos.data(), 4, start}, exec.exec);
  EXPECT_EQ((std::vector<int32_t>(start, start + 4)), (std::vector<int32_t>{0, 2, 2, 4}));
}

TEST(Compressor, AppendsClosedRowsOnly) {
  Random random(10);
  test::Pages pages(RowFormat::fp4_e4m3, 32, 2, 20, 3, random);
  const std::vector<std::byte> before = pages.memory;
  Matrix x(3, 32, DType::bf16);
  x.fill(random);
  const std::vector<int32_t> seq = {1, 1, 0}, pos = {6, 7, 2};
  test::TestExec exec(1);
  plan(AppendRows{32, 2, RowFormat::fp4_e4m3, DType::bf16}, this_machine())(
      {x.view(), seq.data(), pos.data(), pages.rows}, exec.exec);
  const std::vector<float> row = pages.get(1, 3);
  std::vector<float> want(32);
  std::byte codes[16], scales[2];
  for (int64_t c = 0; c < 32; ++c) want[static_cast<size_t>(c)] = x.get(1, c);
  encode_row(RowFormat::fp4_e4m3, want.data(), 32, codes, scales);
  decode_row(RowFormat::fp4_e4m3, codes, scales, 32, want.data());
  EXPECT_EQ(row, want);
  int changed = 0;
  for (size_t i = 0; i < before.size(); ++i) changed += before[i] != pages.memory[i];
  EXPECT_LE(changed, 18);  // one row
}

// The rule by definition: layer l runs a row at q in full iff q >= T - (1 + (W - 1)(L - 1 - l)).
TEST(DecoderOrder, FollowsTheDefinition) {
  Random random(4);
  for (int round = 0; round < 300; ++round) {
    const DecoderOrder op{1 + random.below(9), 1 + random.below(4), 5 + random.below(4)};
    std::vector<int32_t> seq, pos, end, count;
    for (int32_t s = 0; s < 3; ++s) {
      const int32_t first = random.below(40), n = 1 + random.below(60);
      end.push_back(1 + random.below(90));
      for (int32_t i = 0; i < n; ++i) {
        seq.push_back(s);
        pos.push_back(first + i);
      }
      add_decoder_row_counts(op, first, n, end.back(), count);
    }
    const auto T = static_cast<int32_t>(seq.size());
    std::vector<int32_t> order(seq.size(), -1);
    test::TestExec exec(1);
    plan(op, this_machine())({pos.data(), seq.data(), end.data(), T, count, order.data()}, exec.exec);
    std::vector<int32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (int32_t t = 0; t < T; ++t) ASSERT_EQ(sorted[static_cast<size_t>(t)], t);
    for (int32_t l = op.first_layer - 1; l < op.n_layers; ++l) {
      const int32_t n = count[static_cast<size_t>(l - op.first_layer + 1)];
      for (int32_t i = 0; i < T; ++i) {
        const auto row = static_cast<size_t>(order[static_cast<size_t>(i)]);
        const bool needed =
            pos[row] >= end[static_cast<size_t>(seq[row])] - (1 + (op.window - 1) * (op.n_layers - 1 - l));
        ASSERT_EQ(i < n, needed) << "layer " << l << " of " << op.n_layers << ", window " << op.window
                                 << ", position " << pos[row];
      }
    }
  }
}

// 40 layers, window 128: the figures of a released prompt.
TEST(DecoderOrder, ReleasedFigures) {
  const DecoderOrder op{128, 20, 40};
  for (const auto& [T, pairs] : {std::pair{128, 2433}, {1024, 15845}, {100000, 24150}}) {
    std::vector<int32_t> count;
    add_decoder_row_counts(op, 0, T, T, count);
    EXPECT_EQ(std::accumulate(count.begin() + 1, count.end(), 0), pairs) << T;
    if (T > 5000) {
      EXPECT_EQ(count[0], 2541);
      EXPECT_EQ(count[1], 2414);
      EXPECT_EQ(count.back(), 1);
    }
  }
}

}  // namespace
}  // namespace gannet
