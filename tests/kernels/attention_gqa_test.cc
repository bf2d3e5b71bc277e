#include "kernels/attention_gqa.h"

#include <gtest/gtest.h>

#include "support/kernels.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;
using test::TestExec;

// Sequences with full caches over a shuffled pool, and rows to attend with.
struct Case {
  AttentionGqa op;
  std::vector<int32_t> table, row_seq, row_pos;
  std::vector<std::byte> pool;
  PagedRows key, value;
  Matrix q;
  double most_value = 0;
  int32_t max_pos = 0;

  Case(const AttentionGqa& o, int32_t rows_per_block, const std::vector<std::pair<int32_t, int32_t>>& rows,
       uint64_t seed, float size = 1)
      : op(o), q(static_cast<int64_t>(rows.size()), int64_t{o.heads} * o.head_dim, o.q, 3, 1) {
    Random random(seed);
    int32_t n_seqs = 0;
    for (const auto& [seq, pos] : rows) {
      row_seq.push_back(seq);
      row_pos.push_back(pos);
      n_seqs = std::max(n_seqs, seq + 1);
      max_pos = std::max(max_pos, pos);
    }
    q.fill(random, size);
    const int32_t max_blocks = max_pos / rows_per_block + 1, width = op.kv_heads * op.head_dim;
    for (int32_t b = 0; b < n_seqs * max_blocks; ++b) table.push_back(b);
    for (size_t b = table.size(); b > 1; --b)
      std::swap(table[b - 1], table[static_cast<size_t>(random.below(static_cast<int32_t>(b)))]);
    const int64_t plane_bytes = int64_t{rows_per_block} * row_code_bytes(op.format, width);
    const int64_t block_bytes = 2 * plane_bytes + 48;
    pool.assign(table.size() * static_cast<size_t>(block_bytes), std::byte{0xFF});  // NaN where nobody wrote
    key = {pool.data(), table.data(), max_blocks, rows_per_block, block_bytes, 16, 0, width, op.format};
    value = key;
    value.codes_offset = 32 + plane_bytes;
    const DType type = op.format == RowFormat::f32   ? DType::f32
                       : op.format == RowFormat::f16 ? DType::f16
                                                     : DType::bf16;
    std::vector<int32_t> length(static_cast<size_t>(n_seqs));
    for (const auto& [seq, pos] : rows)
      length[static_cast<size_t>(seq)] = std::max(length[static_cast<size_t>(seq)], pos + 1);
    for (int32_t s = 0; s < n_seqs; ++s)
      for (int32_t j = 0; j < length[static_cast<size_t>(s)]; ++j)
        for (const PagedRows* plane : {&key, &value}) {
          const int64_t block = table[static_cast<size_t>(s * max_blocks + j / rows_per_block)];
          std::byte* at = pool.data() + block * block_bytes + plane->codes_offset +
                          j % rows_per_block * row_code_bytes(op.format, width);
          for (int32_t i = 0; i < width; ++i) test::store(at + i * dtype_bytes(type), type, random.unit() * size);
        }
    most_value = size;
  }
  AttentionGqaArgs args(int64_t first, int64_t n, View out) {
    return {
        q.heads(op.heads).rows(first, n), row_seq.data() + first, row_pos.data() + first, key, value, max_pos, out};
  }
  Matrix run(const AttentionGqaVariant& v, Exec& exec) {
    Matrix out(q.rows(), q.width(), op.out, 1, 1);
    v.run(op, args(0, q.rows(), out.heads(op.heads)), exec);
    return out;
  }
};

std::vector<std::pair<int32_t, int32_t>> span_of(int32_t seq, int32_t first, int32_t n) {
  std::vector<std::pair<int32_t, int32_t>> rows;
  for (int32_t i = 0; i < n; ++i) rows.emplace_back(seq, first + i);
  return rows;
}

std::vector<const AttentionGqaVariant*> fast_variants(const AttentionGqa& op) {
  std::vector<const AttentionGqaVariant*> variants;
  for (const auto& v : attention_gqa_cpu())
    if (v.fits(op, this_machine())) variants.push_back(&v);
  return variants;
}

void expect_matches_ref(TestExec& e, Case c) {
  const Matrix want = c.run(attention_gqa_ref()[0], e.exec);
  std::vector<Matrix> all;
  for (const auto* v : fast_variants(c.op)) {
    Matrix got = c.run(*v, e.exec);
    ASSERT_TRUE(got.canaries_intact());
    for (int64_t t = 0; t < want.rows(); ++t) {
      const double n_keys = c.row_pos[static_cast<size_t>(t)] + 1;
      // Scores are sums of D products below most^2: their error moves each p by that relative amount.
      const double score =
          (c.op.head_dim / 16.0 + 10) * 0x1p-24 * c.op.scale * c.op.head_dim * c.most_value * c.most_value;
      const double bound = (2 * score + (n_keys / 256 + 300) * 0x1p-24) * c.most_value;
      for (int64_t i = 0; i < want.width(); ++i)
        ASSERT_TRUE(test::close(got.get(t, i), want.get(t, i), bound + test::ulp(want.get(t, i), c.op.out)))
            << v->name << " D " << c.op.head_dim << " H " << c.op.heads << " row " << t << " channel " << i << ": "
            << got.get(t, i) << " for " << want.get(t, i) << ", bound " << bound;
    }
    all.push_back(std::move(got));
  }
  for (size_t i = 1; i < all.size(); ++i)
    for (int64_t t = 0; t < want.rows(); ++t) ASSERT_TRUE(all[i].row_equal(t, all[0], t)) << "row " << t;
}

TEST(AttentionGqa, EveryVariantMatchesRef) {
  TestExec e(2, int64_t{16} << 20);
  for (const RowFormat format : {RowFormat::f32, RowFormat::f16, RowFormat::bf16})
    for (const auto& [heads, kv_heads] : {std::pair{9, 3}, {4, 4}, {8, 1}, {5, 1}, {14, 2}})
      for (const int32_t head_dim : {16, 64, 80, 128})
        for (const int32_t window : {0, 20}) {
          const DType type = format == RowFormat::bf16 ? DType::bf16 : DType::f32;
          const AttentionGqa op{heads,  kv_heads, head_dim, window, 1 / std::sqrt(static_cast<float>(head_dim)),
                                format, type,     type};
          const auto seed = static_cast<uint64_t>(heads * 1000 + head_dim);
          expect_matches_ref(e, Case(op, 16, span_of(0, 0, 37), seed));
          expect_matches_ref(e, Case(op, 16, {{0, 0}}, seed));
          expect_matches_ref(e, Case(op, 7, {{0, 300}, {1, 12}, {1, 13}, {2, 511}}, seed));
        }
}

TEST(AttentionGqa, LongContextsAndWindows) {
  TestExec e(2, int64_t{16} << 20);
  for (const int32_t window : {0, 1, 100, 256, 700}) {
    const AttentionGqa op{6, 2, 64, window, 0.125f, RowFormat::f16, DType::f32, DType::f32};
    for (const int32_t pos : {254, 255, 256, 257, 511, 512, 1500}) {
      expect_matches_ref(e, Case(op, 16, {{0, pos}}, static_cast<uint64_t>(pos)));
      expect_matches_ref(e, Case(op, 16, span_of(0, pos - 3, 70), static_cast<uint64_t>(pos)));
    }
  }
}

TEST(AttentionGqa, SharpScores) {  // one key takes everything: the others' p underflow
  TestExec e;
  const AttentionGqa op{4, 2, 32, 0, 1.0f, RowFormat::f32, DType::f32, DType::f32};
  expect_matches_ref(e, Case(op, 16, span_of(0, 280, 20), 5, 6));
}

// One call over all rows = calls over any part of them, at any number of threads: the same bits.
TEST(AttentionGqa, RowBitsDependOnTheRowAlone) {
  for (const int32_t window : {0, 150}) {
    const AttentionGqa op{9, 3, 64, window, 0.125f, RowFormat::f16, DType::f32, DType::bf16};
    Case c(op, 16, span_of(0, 450, 130), 11);
    TestExec one(1, int64_t{16} << 20);
    const auto variants = fast_variants(op);
    if (variants.empty()) GTEST_SKIP() << "this CPU has no fast variant";
    const Matrix want = c.run(*variants[0], one.exec);
    for (const auto* v : variants)
      for (const int threads : {1, 2, 3, 4}) {
        TestExec e(threads, int64_t{16} << 20);
        for (const int32_t n : {1, 2, 7, 16, 130})
          for (int32_t first = 0; first + n <= 130; first += std::max(n, 31)) {
            Matrix out(n, c.q.width(), op.out, 1, 1);
            Arena arena(attention_gqa_workspace_bytes(op, n, c.max_pos, threads));  // as small as announced
            Exec exec{e.pool, arena};
            v->run(op, c.args(first, n, out.heads(9)), exec);
            for (int32_t t = 0; t < n; ++t)
              ASSERT_TRUE(out.row_equal(t, want, first + t))
                  << v->name << ", " << threads << " threads, row " << first + t << " of " << n;
          }
      }
  }
}

// Sequences beside a row change nothing.
TEST(AttentionGqa, BatchOfSequences) {
  TestExec e(2, int64_t{16} << 20);
  const AttentionGqa op{4, 2, 64, 0, 0.125f, RowFormat::f16, DType::f32, DType::f32};
  std::vector<std::pair<int32_t, int32_t>> rows;
  for (int32_t s = 0; s < 8; ++s) rows.emplace_back(s, 100 * s + 3);
  Case c(op, 16, rows, 3);
  for (const auto* v : fast_variants(op)) {
    const Matrix all = c.run(*v, e.exec);
    for (int32_t t = 0; t < 8; ++t) {
      Matrix alone(1, c.q.width(), op.out);
      v->run(op, c.args(t, 1, alone.heads(4)), e.exec);
      EXPECT_TRUE(alone.row_equal(0, all, t)) << v->name << " " << t;
    }
  }
}

}  // namespace
}  // namespace gannet
