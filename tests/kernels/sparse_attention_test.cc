#include "kernels/sparse_attention.h"

#include <gtest/gtest.h>

#include "v41_cache.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;

// Two sequences: rows of this step behind `before` earlier positions, some of them in the ring, and selected rows.
struct AttentionCase {
  SparseAttention op;
  int32_t T = 0;
  std::vector<int32_t> row_seq, row_pos, first_row, first_pos, n_rows, selected, n_selected;
  Random random;
  test::Rings rings;
  test::Pages pages;
  test::TestExec memory;
  StepRows step;
  Matrix q, out;
  std::vector<float> sink;

  AttentionCase(const SparseAttention& o, std::vector<int32_t> before, std::vector<int32_t> now, RowFormat window,
                RowFormat compressed, uint64_t seed)
      : op(o),
        random(seed),
        rings(window, o.width, static_cast<int32_t>(now.size()), o.window + 3),
        pages(compressed, o.width, static_cast<int32_t>(now.size()), 64, 8, random),
        q(std::accumulate(now.begin(), now.end(), 0), int64_t{o.heads} * o.width, o.q, 4),
        out(q.rows(), q.width(), o.out, 2) {
    for (size_t s = 0; s < now.size(); ++s) {
      first_row.push_back(T);
      first_pos.push_back(before[s]);
      n_rows.push_back(now[s]);
      for (int32_t i = 0; i < now[s]; ++i, ++T) {
        row_seq.push_back(static_cast<int32_t>(s));
        row_pos.push_back(before[s] + i);
      }
    }
    step = make_step_rows(memory.arena, T, o.width, window);
    for (int32_t t = 0; t < T; ++t)
      put(step.codes + t * row_code_bytes(window, o.width), step.scales + t * row_scale_bytes(window, o.width),
          window, &step.tags[t], row_pos[static_cast<size_t>(t)]);
    for (size_t s = 0; s < now.size(); ++s)
      for (int32_t p = std::max(0, before[s] - rings.rows.capacity); p < before[s]; ++p) {
        std::byte* base = rings.rows.base + rings.slot[s] * rings.rows.ring_bytes;
        const int64_t i = p % rings.rows.capacity;
        put(base + rings.rows.codes_offset + i * row_code_bytes(window, o.width),
            base + rings.rows.scales_offset + i * row_scale_bytes(window, o.width), window,
            reinterpret_cast<int32_t*>(base + rings.rows.tags_offset) + i, p);
      }
    for (int32_t s = 0; s < static_cast<int32_t>(now.size()); ++s)
      for (int32_t j = 0; j < 64; ++j) pages.put(s, j, values());
    for (int32_t t = 0; t < T; ++t) {
      std::vector<int32_t> all(64);
      std::iota(all.begin(), all.end(), 0);
      for (size_t i = 64; i > 1; --i)
        std::swap(all[i - 1], all[static_cast<size_t>(random.below(static_cast<int32_t>(i)))]);
      n_selected.push_back(random.below(o.topk + 1));
      std::sort(all.begin(), all.begin() + n_selected.back());
      selected.insert(selected.end(), all.begin(), all.begin() + o.topk);
    }
    q.fill(random, 2);
    for (int32_t h = 0; h < o.heads; ++h) sink.push_back(random.unit() * 3);
  }
  std::vector<float> values() {
    std::vector<float> x(static_cast<size_t>(op.width));
    for (float& v : x) v = random.unit();
    return x;
  }
  void put(std::byte* codes, std::byte* scales, RowFormat format, int32_t* tag, int32_t pos) {
    encode_row(format, values().data(), op.width, codes, scales);
    *tag = pos;
  }
  void run(const SparseAttentionVariant& v, Matrix& to, int threads, int32_t first = 0, int32_t n = -1) {
    test::TestExec exec(threads);
    const int32_t rows = n < 0 ? T : n;
    const auto at = static_cast<size_t>(first);
    SparseAttentionArgs args{q.heads(op.heads).rows(first, rows),
                             row_seq.data() + at,
                             row_pos.data() + at,
                             {step, rings.rows, first_row.data(), first_pos.data()},
                             pages.rows,
                             op.topk > 0 ? selected.data() + at * static_cast<size_t>(op.topk) : nullptr,
                             n_selected.data() + at,
                             sink.data(),
                             to.heads(op.heads).rows(first, rows)};
    v.run(op, args, exec.exec);
  }
};

struct Shape {
  int32_t heads, width, window, topk;
};
const Shape kShapes[] = {{4, 64, 16, 16}, {1, 32, 1, 0}, {5, 96, 7, 33}, {8, 512, 32, 24}, {3, 64, 5, 1}};

TEST(SparseAttention, EveryVariantMatchesRef) {
  for (const auto& v : sparse_attention_cpu())
    for (const Shape& shape : kShapes)
      for (const bool exact : {true, false}) {
        const DType type = exact ? DType::f32 : DType::bf16;
        const SparseAttention op{
            shape.heads, shape.width, shape.window, shape.topk, 1 / std::sqrt(static_cast<float>(shape.width)),
            !exact,      type,        type};
        if (!v.fits(op, this_machine())) continue;
        AttentionCase c(op, {0, 40}, {9, 3}, exact ? RowFormat::f32 : RowFormat::fp8_ue8m0,
                        exact ? RowFormat::f32 : RowFormat::fp4_e4m3, 17);
        Matrix want(c.T, c.q.width(), type, 2);
        c.run(sparse_attention_ref()[0], want, 1);
        c.run(v, c.out, 2);
        ASSERT_TRUE(c.out.canaries_intact());
        // Values are at most about 1. A score is off by (D/16 + 8) u times sum |q k| / sqrt(D) <= 2 sqrt(D); with
        // rounded P the two may round to neighbours, 2^-8 of that P.
        const double score = (shape.width / 16.0 + 8) * 0x1p-24 * 2 * std::sqrt(static_cast<double>(shape.width));
        const double bound = 1.1 * (2 * score + 2 * (shape.window + shape.topk) * 0x1p-24) + (exact ? 0 : 0x1p-8);
        for (int64_t r = 0; r < c.T; ++r)
          for (int64_t i = 0; i < c.q.width(); ++i)
            ASSERT_TRUE(test::close(c.out.get(r, i), want.get(r, i), bound + test::ulp(want.get(r, i), type)))
                << v.name << " row " << r << " channel " << i << ": " << c.out.get(r, i) << " " << want.get(r, i);
      }
}

TEST(SparseAttention, RowsThreadsAndInstructionSetsChangeNoBit) {
  const SparseAttention op{6, 64, 11, 20, 0.125f, true, DType::bf16, DType::bf16};
  AttentionCase c(op, {0, 25}, {12, 18}, RowFormat::fp8_ue8m0, RowFormat::fp4_e4m3, 23);
  std::vector<const SparseAttentionVariant*> fitting;
  for (const auto& v : sparse_attention_cpu())
    if (v.fits(op, this_machine())) fitting.push_back(&v);
  if (fitting.empty()) GTEST_SKIP() << "no fast variant on this machine";
  c.run(*fitting[0], c.out, 1);
  for (const auto* v : fitting)
    for (const int threads : {1, 3})
      for (const int32_t step : {1, 2, 7, 30}) {
        Matrix again(c.T, c.q.width(), op.out);
        for (int32_t first = 0; first < c.T; first += step)
          c.run(*v, again, threads, first, std::min(step, c.T - first));
        for (int64_t r = 0; r < c.T; ++r)
          ASSERT_TRUE(again.row_equal(r, c.out, r)) << v->name << " " << threads << " " << step;
      }
}

// A sink far above the scores takes all the weight; one far below takes none.
TEST(SparseAttention, SinkIsARawLogit) {
  const SparseAttention op{2, 32, 4, 0, 0.25f, false, DType::f32, DType::f32};
  for (const auto* list : {&sparse_attention_ref()[0], sparse_attention_cpu().data()}) {
    if (!list->fits(op, this_machine())) continue;
    AttentionCase c(op, {0}, {4}, RowFormat::f32, RowFormat::f32, 3);
    c.sink = {60, -60};
    c.run(*list, c.out, 1);
    for (int64_t i = 0; i < 32; ++i) EXPECT_LT(std::fabs(c.out.get(2, i)), 1e-20f);
    // Position 0 attends to itself alone: without a sink the answer is its own row.
    std::vector<float> own(32);
    decode_row(RowFormat::f32, c.step.codes, c.step.scales, 32, own.data());
    for (int64_t i = 0; i < 32; ++i) EXPECT_NEAR(c.out.get(0, 32 + i), own[static_cast<size_t>(i)], 1e-6f);
  }
}

TEST(SparseAttentionDeathTest, AMissingWindowRowIsABug) {
  const SparseAttention op{1, 32, 4, 0, 0.25f, false, DType::f32, DType::f32};
  AttentionCase c(op, {9}, {1}, RowFormat::f32, RowFormat::f32, 3);
  reinterpret_cast<int32_t*>(c.rings.memory.data())[8 % c.rings.rows.capacity] = 1;  // position 8 was overwritten
  EXPECT_DEATH(c.run(sparse_attention_ref()[0], c.out, 1), "position 8");
}

}  // namespace
}  // namespace gannet
