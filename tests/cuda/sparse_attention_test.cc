// Window and selected attention at V4.1's shapes on a device: within its bound of the scalar reference, and the
// same bits whatever other tokens run beside.
#include "kernels/sparse_attention.h"

#include "cuda/device_case.h"
#include "kernels/v41_cache.h"

namespace gannet {
namespace {

using test::DeviceCase;
using test::DeviceMatrix;
using test::Matrix;

constexpr int32_t kHeads = 64, kWidth = 512, kWindow = 128, kRows = 700;

// Sequences with `before` positions in their ring and `now` rows in this step.
struct Case {
  SparseAttention op;
  int32_t T = 0;
  std::vector<int32_t> row_seq, row_pos, first_row, first_pos, selected, n_selected;
  test::Random random;
  test::Rings rings;
  test::Pages pages;
  test::TestExec memory;
  StepRows step;
  Matrix q;
  std::vector<float> sink;

  Case(int32_t topk, const std::vector<int32_t>& before, const std::vector<int32_t>& now, uint64_t seed)
      : op{kHeads, kWidth, kWindow, topk, 0.044f, true, DType::bf16, DType::bf16},
        random(seed),
        rings(RowFormat::fp8_ue8m0, kWidth, static_cast<int32_t>(now.size()), kWindow + 4),
        pages(RowFormat::fp4_e4m3, kWidth, static_cast<int32_t>(now.size()), kRows, 64, random),
        q(std::accumulate(now.begin(), now.end(), 0), int64_t{kHeads} * kWidth, DType::bf16, 8) {
    for (size_t s = 0; s < now.size(); ++s) {
      first_row.push_back(T);
      first_pos.push_back(before[s]);
      for (int32_t i = 0; i < now[s]; ++i, ++T)
        row_seq.push_back(static_cast<int32_t>(s)), row_pos.push_back(before[s] + i);
    }
    step = make_step_rows(memory.arena, T, kWidth, RowFormat::fp8_ue8m0);
    for (int32_t t = 0; t < T; ++t) {
      step.tags[t] = row_pos[static_cast<size_t>(t)];
      encode_row(step.format, values().data(), kWidth, step.codes + t * kWidth, step.scales + t * (kWidth / 32));
    }
    for (size_t s = 0; s < now.size(); ++s) {
      std::byte* base = rings.rows.base + rings.slot[s] * rings.rows.ring_bytes;
      for (int32_t p = std::max(0, before[s] - rings.rows.capacity); p < before[s]; ++p) {
        const int32_t i = p % rings.rows.capacity;
        reinterpret_cast<int32_t*>(base + rings.rows.tags_offset)[i] = p;
        encode_row(step.format, values().data(), kWidth, base + rings.rows.codes_offset + i * kWidth,
                   base + rings.rows.scales_offset + i * (kWidth / 32));
      }
      for (int32_t j = 0; j < kRows; ++j) pages.put(static_cast<int32_t>(s), j, values());
    }
    for (int32_t t = 0; t < T && topk > 0; ++t) {
      std::vector<int32_t> all(kRows);
      std::iota(all.begin(), all.end(), 0);
      for (size_t i = kRows; i > 1; --i)
        std::swap(all[i - 1], all[static_cast<size_t>(random.below(static_cast<int32_t>(i)))]);
      n_selected.push_back(t % 3 == 0 ? topk : random.below(topk + 1));
      std::sort(all.begin(), all.begin() + n_selected.back());
      selected.insert(selected.end(), all.begin(), all.begin() + topk);
    }
    q.fill(random, 2);
    for (int32_t h = 0; h < kHeads; ++h) sink.push_back(random.unit() * 3);
  }
  std::vector<float> values() {
    std::vector<float> x(kWidth);
    for (float& v : x) v = random.unit();
    return x;
  }
  SparseAttentionArgs host_args(Matrix& out) {
    return {q.heads(kHeads),   row_seq.data(),
            row_pos.data(),    {step, rings.rows, first_row.data(), first_pos.data()},
            pages.rows,        op.topk > 0 ? selected.data() : nullptr,
            n_selected.data(), sink.data(),
            out.heads(kHeads)};
  }
  // Rows [first, first + n) on the device.
  Matrix run_device(int32_t first, int32_t n) {
    DeviceCase d;
    Exec exec = d.exec();
    Matrix out(n, q.width(), DType::bf16, 2);
    DeviceMatrix qd(d, q), od(d, out);
    RecentRows recent{step, rings.rows, d.put(first_row), d.put(first_pos)};
    recent.step.codes = d.put(step.codes, int64_t{T} * kWidth);
    recent.step.scales = d.put(step.scales, int64_t{T} * (kWidth / 32));
    recent.ring.base = d.put(rings.memory);
    recent.ring.ring_slot = d.put(rings.slot);
    PagedRows rows = pages.rows;
    rows.base = d.put(pages.memory);
    rows.block_table = d.put(pages.table);
    const int32_t* chosen = op.topk > 0 ? d.put(selected) + int64_t{first} * op.topk : nullptr;
    const int32_t* n_chosen = op.topk > 0 ? d.put(n_selected) + first : nullptr;
    plan(op, d.machine())({qd.heads(kHeads).rows(first, n), d.put(row_seq) + first, d.put(row_pos) + first, recent,
                           rows, chosen, n_chosen, d.put(sink), od.heads(kHeads)},
                          exec);
    od.fetch();
    EXPECT_TRUE(out.canaries_intact());
    return out;
  }
};

// Values lie in [-1, 1) and decoded ones within 9/8 of that; |q| < 2. So |score error| <= 576 * 2^-23 * scale * 512
// * 2.25, and an output moves by that much of at most 9/8, by one bf16 flip of each P (2^-8), by the sum over keys,
// and half an ulp.
TEST(CudaSparseAttention, MatchesRef) {
  GANNET_NEEDS_DEVICE();
  for (const int32_t topk : {0, 512}) {
    Case c(topk, {0, 5, 300, 127}, {3, 2, 4, 1}, 5);
    Matrix want(c.T, c.q.width(), DType::bf16, 2);
    test::TestExec e(16, int64_t{1} << 30);
    sparse_attention_ref()[0].run(c.op, c.host_args(want), e.exec);
    const Matrix got = c.run_device(0, c.T);
    const double row = 9.0 / 8, score = 576 * 0x1p-23 * 0.044 * 512 * 2 * row;
    const double bound = (2 * score + 0x1p-8 + 8 * (kWindow + topk) * 0x1p-23) * row;
    double worst = 0;
    for (int32_t t = 0; t < c.T; ++t)
      for (int64_t i = 0; i < c.q.width(); ++i) {
        ASSERT_TRUE(test::close(got.get(t, i), want.get(t, i), bound + test::ulp(want.get(t, i), DType::bf16)))
            << "topk " << topk << " row " << t << " at " << i << ": " << got.get(t, i) << " for " << want.get(t, i);
        worst = std::max(worst, std::fabs(double{got.get(t, i)} - double{want.get(t, i)}));
      }
    std::printf("topk %d: largest difference %.2e, bound %.2e\n", topk, worst, bound);
  }
}

TEST(CudaSparseAttention, RowBitsDependOnTheRowAlone) {
  GANNET_NEEDS_DEVICE();
  for (const int32_t topk : {0, 512}) {
    Case c(topk, {40, 300}, {30, 35}, 6);
    const Matrix all = c.run_device(0, c.T), again = c.run_device(0, c.T);
    for (int32_t t = 0; t < c.T; ++t) ASSERT_TRUE(again.row_equal(t, all, t));
    for (const int32_t n : {1, 7, 16})
      for (int32_t first = 0; first + n <= c.T; first += 11) {
        const Matrix part = c.run_device(first, n);
        for (int32_t t = 0; t < n; ++t)
          ASSERT_TRUE(part.row_equal(t, all, first + t)) << "row " << t << " of " << n;
      }
  }
}

}  // namespace
}  // namespace gannet
