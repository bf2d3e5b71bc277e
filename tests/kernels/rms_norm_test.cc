#include "kernels/rms_norm.h"

#include <gtest/gtest.h>

#include "support/kernels.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;

struct Case {
  RmsNorm op;
  Matrix x;
  std::vector<float> weight;

  Case(int32_t rows, int32_t width, DType x_type, DType out_type, float offset, bool with_weight)
      : op{width, 1e-6f, offset, x_type, out_type}, x(rows, width, x_type, 3, 1) {
    Random random(static_cast<uint64_t>(rows * 100 + width));
    x.fill(random, 4);
    if (with_weight)
      for (int32_t i = 0; i < width; ++i) weight.push_back(random.unit());
  }
  Matrix run(const RmsNormVariant& v, Exec& exec) {
    Matrix out(x.rows(), op.width, op.out, 2, 1);
    v.run(op, {x.view(), weight.empty() ? nullptr : weight.data(), out.view()}, exec);
    return out;
  }
};

void expect_matches_ref(test::TestExec& e, Case c) {
  const Matrix want = c.run(rms_norm_ref()[0], e.exec);
  for (const auto& v : rms_norm_cpu()) {
    if (!v.fits(c.op, this_machine())) continue;
    const Matrix got = c.run(v, e.exec);
    ASSERT_TRUE(got.canaries_intact());
    for (int64_t t = 0; t < want.rows(); ++t)
      for (int64_t i = 0; i < want.width(); ++i) {
        const double w = want.get(t, i);
        const double bound = (c.op.width / 16.0 + 8) * 0x1p-24 * std::fabs(w) + test::ulp(w, c.op.out);
        ASSERT_TRUE(test::close(got.get(t, i), w, bound))
            << v.name << " width " << c.op.width << " at " << t << ", " << i;
      }
  }
}

TEST(RmsNorm, EveryVariantMatchesRef) {
  test::TestExec e;
  for (const int32_t rows : {0, 1, 7})
    for (const int32_t width : {1, 15, 16, 17, 64, 576, 2047, 4096})
      for (const DType type : {DType::f32, DType::bf16})
        for (const float offset : {0.0f, 1.0f}) {
          expect_matches_ref(e, Case(rows, width, type, DType::f32, offset, true));
          expect_matches_ref(e, Case(rows, width, type, DType::bf16, offset, width % 2 == 0));
        }
}

TEST(RmsNorm, ZeroRowGivesZeros) {
  test::TestExec e;
  Case c(1, 20, DType::f32, DType::f32, 0, true);
  c.op.eps = 1e-20f;
  for (int i = 0; i < 20; ++i) c.x.set(0, i, 0);
  for (const auto& v : rms_norm_cpu())
    if (v.fits(c.op, this_machine())) {
      const Matrix out = c.run(v, e.exec);
      for (int i = 0; i < 20; ++i) EXPECT_EQ(out.get(0, i), 0);
    }
}

TEST(RmsNorm, HeadsAreRowsOfTheirOwnAndBitsDoNotDependOnTheVariant) {
  test::TestExec e(3);
  Case c(130, 5 * 48, DType::bf16, DType::f32, 0, false);
  Case flat(130 * 5, 48, DType::bf16, DType::f32, 0, false);
  for (int64_t t = 0; t < 650; ++t)
    for (int64_t i = 0; i < 48; ++i) flat.x.set(t, i, c.x.get(t / 5, t % 5 * 48 + i));
  c.op.width = 48;
  std::vector<float> weight(48, 0.5f);
  flat.weight = weight;
  std::vector<Matrix> all;
  for (const auto& v : rms_norm_cpu()) {
    if (!v.fits(c.op, this_machine())) continue;
    Matrix out(130, 5 * 48);
    v.run(c.op, {c.x.heads(5), weight.data(), out.heads(5)}, e.exec);
    const Matrix want = flat.run(v, e.exec);
    for (int64_t t = 0; t < 650; ++t)
      for (int64_t i = 0; i < 48; ++i) ASSERT_EQ(out.get(t / 5, t % 5 * 48 + i), want.get(t, i)) << v.name;
    all.push_back(std::move(out));
  }
  for (size_t i = 1; i < all.size(); ++i)
    for (int64_t t = 0; t < 130; ++t) ASSERT_TRUE(all[i].row_equal(t, all[0], t));
}

TEST(RmsNorm, InPlace) {
  test::TestExec e(1);
  for (const auto& v : rms_norm_cpu()) {
    Case c(3, 100, DType::f32, DType::f32, 0, true);
    if (!v.fits(c.op, this_machine())) continue;
    const Matrix want = c.run(v, e.exec);
    v.run(c.op, {c.x.view(), c.weight.data(), c.x.view()}, e.exec);
    for (int64_t t = 0; t < 3; ++t) EXPECT_TRUE(c.x.row_equal(t, want, t)) << v.name;
  }
}

}  // namespace
}  // namespace gannet
