#include "kernels/index_select.h"

#include <gtest/gtest.h>

#include <set>

#include "v41_cache.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;

struct SelectCase {
  IndexSelect op;
  Random random;
  test::Pages pages;
  std::vector<int32_t> row_seq, row_pos;
  Matrix query, weight;
  std::vector<int32_t> selected, n_selected, candidates, n_candidates;
  int32_t max_pos = 0;

  // Coarse values, so that ties and exact zeros are common.
  SelectCase(const IndexSelect& o, std::vector<int32_t> positions, uint64_t seed)
      : op(o),
        random(seed),
        pages(o.keys, o.width, 2, 200, 16, random),
        query(static_cast<int64_t>(positions.size()), int64_t{o.heads} * o.width, o.query, 2),
        weight(static_cast<int64_t>(positions.size()), o.heads, o.weight) {
    for (int32_t s = 0; s < 2; ++s)
      for (int32_t j = 0; j < 200; ++j) {
        std::vector<float> key(static_cast<size_t>(o.width), 0.0f);
        for (int i = 0; i < 3; ++i)
          key[static_cast<size_t>(random.below(o.width))] = static_cast<float>(random.below(5) - 2);
        pages.put(s, j, key);
      }
    for (size_t t = 0; t < positions.size(); ++t) {
      row_seq.push_back(static_cast<int32_t>(t % 2));
      row_pos.push_back(positions[t]);
      max_pos = std::max(max_pos, positions[t]);
      for (int64_t i = 0; i < query.width(); ++i)
        query.set(static_cast<int64_t>(t), i, static_cast<float>(random.below(3) - 1));
      for (int64_t h = 0; h < o.heads; ++h)
        weight.set(static_cast<int64_t>(t), h, static_cast<float>(random.below(5) - 2));
    }
    n_selected.assign(positions.size(), -9);
    selected.assign(positions.size() * static_cast<size_t>(o.topk), -9);
    n_candidates.assign(positions.size(), -9);
    candidates.assign(positions.size() * static_cast<size_t>(std::max(1, o.max_blocks)), -9);
  }
  void run(const IndexSelectVariant& v, int threads) {
    test::TestExec exec(threads);
    v.run(op,
          {query.heads(op.heads), weight.view(), pages.rows, row_seq.data(), row_pos.data(), max_pos,
           selected.data(), n_selected.data(), candidates.data(), n_candidates.data()},
          exec.exec);
  }
  double score(size_t t, int32_t j) const {
    const std::vector<float> key = pages.get(row_seq[t], j);
    double sum = 0;
    for (int32_t h = 0; h < op.heads; ++h) {
      double dot = 0;
      for (int32_t c = 0; c < op.width; ++c)
        dot += static_cast<double>(query.get(static_cast<int64_t>(t), int64_t{h} * op.width + c)) *
               static_cast<double>(key[static_cast<size_t>(c)]);
      sum += static_cast<double>(weight.get(static_cast<int64_t>(t), h) * op.weight_scale) * std::max(dot, 0.0);
    }
    return sum;
  }
  // By sorting everything: the best `n` of `from`, ties to the lower.
  static std::vector<int32_t> best(std::vector<std::pair<double, int32_t>> from, int32_t n) {
    std::stable_sort(from.begin(), from.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<int32_t> out;
    for (size_t i = 0; i < from.size() && i < static_cast<size_t>(n); ++i) out.push_back(from[i].second);
    std::sort(out.begin(), out.end());
    return out;
  }
  void check(const IndexSelectVariant& v) {
    for (size_t t = 0; t < row_pos.size(); ++t) {
      const int32_t n = (row_pos[t] + 1) / op.ratio;
      const std::vector<int32_t> blocks(
          candidates.begin() + static_cast<int64_t>(t) * op.max_blocks,
          candidates.begin() + static_cast<int64_t>(t) * op.max_blocks + std::max(0, n_candidates[t]));
      std::vector<std::pair<double, int32_t>> rows, block_best;
      for (int32_t j = 0; j < n; ++j) {
        if (op.role == CandidateRole::restrict_to &&
            std::find(blocks.begin(), blocks.end(), j / op.block_size) == blocks.end())
          continue;
        rows.emplace_back(score(t, j), j);
      }
      for (int32_t b = 0; op.role == CandidateRole::publish && b * op.block_size < n; ++b) {
        double top = -1e300;
        for (int32_t j = b * op.block_size; j < std::min(n, (b + 1) * op.block_size); ++j)
          top = std::max(top, score(t, j));
        if ((n - 1) / op.block_size == b) top = 1e300;
        block_best.emplace_back(top, b);
      }
      const std::vector<int32_t> got(selected.begin() + static_cast<int64_t>(t) * op.topk,
                                     selected.begin() + static_cast<int64_t>(t) * op.topk + n_selected[t]);
      ASSERT_EQ(got, best(rows, op.topk)) << v.name << " row " << t << " position " << row_pos[t];
      if (op.role != CandidateRole::publish) continue;
      ASSERT_EQ(blocks, best(block_best, op.max_blocks)) << v.name << " row " << t;
    }
  }
};

std::vector<IndexSelectVariant> all_variants() {
  std::vector<IndexSelectVariant> all(index_select_cpu().begin(), index_select_cpu().end());
  all.push_back(index_select_ref()[0]);
  return all;
}

// Small integers sum exactly in any order, so every variant must agree with the sort, ties included.
TEST(IndexSelect, ExactWithTies) {
  for (const auto& v : all_variants())
    for (const int32_t ratio : {1, 2})
      for (const int32_t topk : {1, 7, 64, 300})
        for (const RowFormat format : {RowFormat::fp4_ue8m0, RowFormat::f32}) {
          IndexSelect op{3, 32, topk, ratio, 0.25f};
          op.keys = format;
          if (!v.fits(op, this_machine())) continue;
          SelectCase c(op, {0, 1, 2, 17, 63, 64, 127, 198}, static_cast<uint64_t>(topk * 10 + ratio));
          c.run(v, 2);
          c.check(v);
        }
}

TEST(IndexSelect, CandidatesArePublishedAndRestrict) {
  for (const auto& v : all_variants())
    for (const auto& [size, count, topk] : {std::tuple{8, 3, 16}, {4, 5, 12}, {1, 9, 4}, {8, 2, 40}, {16, 64, 5}}) {
      IndexSelect op{2, 64, topk, 1, 1.0f, CandidateRole::publish, size, count};
      if (!v.fits(op, this_machine())) continue;
      SelectCase c(op, {0, 3, 8, 15, 16, 31, 90, 150}, static_cast<uint64_t>(size * 100 + count));
      c.run(v, 1);
      c.check(v);
      c.op.role = CandidateRole::restrict_to;
      c.run(v, 2);
      c.check(v);
    }
}

TEST(IndexSelect, NegativeZeroEqualsZero) {
  for (const auto& v : all_variants()) {
    IndexSelect op{1, 32, 2, 1, 1.0f};
    op.query = op.weight = DType::f32;
    if (!v.fits(op, this_machine())) continue;
    SelectCase c(op, {4}, 1);
    for (int32_t j = 0; j < 5; ++j) {
      std::vector<float> key(32, 0.0f);
      key[0] = j == 3 ? -1.0f : 0.0f;
      c.pages.put(0, j, key);
    }
    for (int64_t i = 0; i < 32; ++i) c.query.set(0, i, i == 0 ? 1.0f : 0.0f);
    c.weight.set(0, 0, -1.0f);  // scores are all -1 * 0 = -0, or +0 where the dot product was cut
    c.run(v, 1);
    EXPECT_EQ(c.selected, (std::vector<int32_t>{0, 1})) << v.name;
  }
}

TEST(IndexSelect, RealScoresDifferOnlyWhereRoundingMayDecide) {
  for (const auto& v : index_select_cpu()) {
    IndexSelect op{5, 96, 20, 1, 0.05f};
    op.query = op.weight = DType::f32;
    op.keys = RowFormat::f32;
    if (!v.fits(op, this_machine())) continue;
    SelectCase c(op, {60, 120, 199}, 77);
    for (int32_t s = 0; s < 2; ++s)
      for (int32_t j = 0; j < 200; ++j) {
        std::vector<float> key(96);
        for (float& x : key) x = c.random.unit();
        c.pages.put(s, j, key);
      }
    c.query.fill(c.random);
    c.weight.fill(c.random);
    c.run(v, 1);
    for (size_t t = 0; t < 3; ++t) {
      std::set<int32_t> chosen(c.selected.begin() + static_cast<int64_t>(t) * 20,
                               c.selected.begin() + static_cast<int64_t>(t) * 20 + c.n_selected[t]);
      double least = 1e300, best_left = -1e300;
      for (int32_t j = 0; j <= c.row_pos[t]; ++j)
        (chosen.contains(j) ? least : best_left) =
            chosen.contains(j) ? std::min(least, c.score(t, j)) : std::max(best_left, c.score(t, j));
      // sum_h |w_h| 0.05 sum |q k| <= 5 * 0.05 * 96
      EXPECT_GE(least, best_left - 2 * ((96 + 5) / 16.0 + 10) * 0x1p-24 * 24) << v.name;
    }
  }
}

}  // namespace
}  // namespace gannet
