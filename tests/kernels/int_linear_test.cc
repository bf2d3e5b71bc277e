#include "kernels/int_linear.h"

#include <gtest/gtest.h>

#include "kernels/linear.h"
#include "support/kernels.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;
using test::TestExec;

std::vector<WeightFormat> formats() {
  std::vector<WeightFormat> taken;
  for (const WeightFormat format : test::all_formats())
    if (int_linear_takes(format)) taken.push_back(format);
  return taken;
}

// Rows as integers, in memory of their own.
struct Rows {
  std::vector<int16_t> q;
  std::vector<float> scale, shift;
  IntRowsView view;
  Rows(int64_t n, int32_t width)
      : q(static_cast<size_t>(n * width), 12345),
        scale(static_cast<size_t>(n * (width / kIntBlock)), NAN),
        shift(scale),
        view{q.data(), scale.data(), shift.data(), n, width} {}
  IntRowsView part(int64_t first, int64_t n) const {
    const int64_t blocks = view.width / kIntBlock;
    return {view.q + first * view.width, view.scale + first * blocks, view.shift + first * blocks, n, view.width};
  }
};

template <class V, class Op>
std::vector<const V*> fitting(std::span<const V> variants, const Op& op) {
  std::vector<const V*> fast;
  for (const V& v : variants)
    if (v.fits(op, this_machine())) fast.push_back(&v);
  return fast;
}

// Values whose blocks differ: ordinary, huge, tiny, all zero, halfway cases, with an infinity, with a NaN.
void fill_rows(Matrix& x, Random& random) {
  for (int64_t t = 0; t < x.rows(); ++t)
    for (int64_t c = 0; c < x.width(); ++c) {
      const int64_t kind = (t + c / kIntBlock) % 8;
      float v = random.unit();
      if (kind == 1) v *= 1e30f;
      if (kind == 2) v *= 1e-30f;
      if (kind == 3) v *= 1e-40f;
      if (kind == 4) v = 0;
      if (kind == 5) v = c % kIntBlock == 0 ? 16256.0f : static_cast<float>(random.below(16000)) + 0.5f;
      if (kind == 6 && t % 3 == 1 && c % kIntBlock == 7) v = t % 2 == 0 ? INFINITY : NAN;
      x.set(t, c, v);
    }
}

TEST(IntRows, EveryVariantEqualsRefAndKeepsItsBound) {
  TestExec e(2);
  for (const int64_t n : {0, 1, 3, 40})
    for (const int32_t width : {0, 32, 96, 608}) {
      Matrix x(n, width, DType::f32, 3, 1);
      Random random(static_cast<uint64_t>(n * 1000 + width));
      fill_rows(x, random);
      Rows want(n, width);
      const IntRows op{width};
      int_rows_ref()[0].run(op, {x.view(), want.view}, e.exec);
      for (const IntRowsVariant* v : fitting(int_rows_cpu(), op)) {
        Rows got(n, width);
        v->run(op, {x.view(), got.view}, e.exec);
        EXPECT_EQ(got.q, want.q) << v->name;
        for (size_t i = 0; i < want.scale.size(); ++i) {
          EXPECT_TRUE(test::close(got.scale[i], want.scale[i], 0)) << v->name << " block " << i;
          EXPECT_TRUE(test::close(got.shift[i], want.shift[i], 0)) << v->name << " block " << i;
        }
      }
      for (int64_t t = 0; t < n; ++t)
        for (int32_t b = 0; b < width / kIntBlock; ++b) {
          double most = 0;
          int64_t sum = 0;
          const float scale = want.scale[static_cast<size_t>(t * (width / kIntBlock) + b)];
          for (int i = 0; i < kIntBlock; ++i) most = std::max(most, std::fabs(double{x.get(t, b * kIntBlock + i)}));
          if (std::isnan(scale) || most < double{kIntLeast}) continue;
          for (int i = 0; i < kIntBlock; ++i) {
            const int q = want.q[static_cast<size_t>(t * width + b * kIntBlock + i)];
            sum += q;
            ASSERT_LE(std::abs(q), kIntMost);
            ASSERT_TRUE(test::close(double{scale} * q, double{x.get(t, b * kIntBlock + i)},
                                    most * (1.0 / 32512 + 0x1p-22)));
          }
          ASSERT_EQ(want.shift[static_cast<size_t>(t * (width / kIntBlock) + b)], scale * static_cast<float>(sum));
        }
    }
}

TEST(IntRows, NotANumberStaysOne) {
  TestExec e(1);
  const IntRows op{64};
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    Matrix x(1, 64);
    for (int c = 0; c < 64; ++c) x.set(0, c, c == 40 ? bad : 1.0f);
    Rows rows(1, 64);
    plan(op, this_machine())({x.view(), rows.view}, e.exec);
    EXPECT_EQ(rows.scale[0], 1.0f / 16256);
    EXPECT_TRUE(std::isnan(rows.scale[1]) && std::isnan(rows.shift[1]));
    EXPECT_EQ(rows.q[40], 0);
  }
}

struct Case {
  IntLinear op;
  std::vector<test::Weight> weight;
  std::vector<std::vector<float>> bias;
  Matrix x;
  Rows rows;

  Case(const std::vector<WeightFormat>& parts, const std::vector<int32_t>& outs, int32_t in, int64_t n, uint64_t seed)
      : op{in, static_cast<int32_t>(parts.size()), {}}, x(n, in), rows(n, in) {
    Random random(seed);
    x.fill(random, 3);
    for (size_t i = 0; i < parts.size(); ++i) {
      op.part[i] = {parts[i], outs[i]};
      weight.push_back(test::make_weight(parts[i], outs[i], in, seed + i, 2));
      bias.emplace_back();
      for (int32_t o = 0; i % 2 == 1 && o < outs[i]; ++o) bias.back().push_back(random.unit());
    }
    TestExec e(1);
    int_rows_ref()[0].run(IntRows{in}, {x.view(), rows.view}, e.exec);
  }
  std::vector<Matrix> empty(int64_t n) const {
    std::vector<Matrix> y;
    for (int i = 0; i < op.n_parts; ++i) y.emplace_back(n, op.part[i].out, DType::f32, 5, 1);
    return y;
  }
  std::vector<Matrix> run(const IntLinearVariant& v, Exec& exec, int64_t first = 0, int64_t n = -1) const {
    IntLinearArgs args;
    args.x = rows.part(first, n < 0 ? x.rows() : n);
    std::vector<Matrix> y = empty(args.x.n_rows);
    for (size_t i = 0; i < weight.size(); ++i)
      args.part[i] = {weight[i].view, bias[i].empty() ? nullptr : bias[i].data(), y[i].view()};
    v.run(op, args, exec);
    return y;
  }
  // At least sum over blocks of |d scale I| + |m shift|: |d w| + |m| <= |W| + 2 |m|, and make_weight() draws halves
  // below 0.05, which a K format multiplies by at most 63. Quantisation adds at most 1/32512 of a block's largest.
  double magnitude(int part, int64_t t, int64_t o) const {
    const WeightFormat format = op.part[part].format;
    const bool k_format = format == WeightFormat::q4_k || format == WeightFormat::q5_k;
    const bool affine = k_format || format == WeightFormat::q4_1 || format == WeightFormat::q5_1;
    const double m = affine ? (k_format ? 0.05 * 63 : 0.05) : 0;
    std::vector<float> w(static_cast<size_t>(op.in));
    dequantize(weight[static_cast<size_t>(part)].view, o, 0, op.in, w.data());
    double sum = 0;
    for (int32_t c = 0; c < op.in; ++c)
      sum += (std::fabs(double{w[static_cast<size_t>(c)]}) + 2 * m) * (std::fabs(double{x.get(t, c)}) + 3.0 / 32512);
    return sum;
  }
};

void expect_matches_ref(const Case& c, TestExec& e) {
  const std::vector<Matrix> want = c.run(int_linear_ref()[0], e.exec);
  for (const IntLinearVariant* v : fitting(int_linear_cpu(), c.op)) {
    const std::vector<Matrix> got = c.run(*v, e.exec);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i].canaries_intact()) << v->name;
      for (int64_t t = 0; t < got[i].rows(); ++t)
        for (int64_t o = 0; o < got[i].width(); ++o) {
          const double bound = (2 * c.op.in / 32.0 + 4) * 0x1p-24 * c.magnitude(static_cast<int>(i), t, o) +
                               test::ulp(double{want[i].get(t, o)}, DType::f32);
          ASSERT_TRUE(test::close(got[i].get(t, o), want[i].get(t, o), bound))
              << v->name << " part " << i << " " << weight_format_info(c.op.part[i].format).name << " in " << c.op.in
              << " rows " << got[i].rows() << " at " << t << ", " << o << ": " << got[i].get(t, o) << " for "
              << want[i].get(t, o);
        }
    }
    EXPECT_EQ(e.arena.used_bytes(), 0);
  }
}

TEST(IntLinear, EveryVariantMatchesRefInEveryFormat) {
  TestExec e;
  for (const WeightFormat format : formats()) {
    const int32_t block = weight_format_info(format).block_elements;
    for (const int64_t rows : {0, 1, 2, 3, 4, 5, 7, 9})
      expect_matches_ref(Case({format}, {35}, block == 32 ? 96 : 512, rows, 7), e);
    expect_matches_ref(Case({format}, {17}, block == 32 ? 1056 : 1024, 3, 8), e);  // more than one packed chunk
    expect_matches_ref(Case({format}, {1}, block, 1, 9), e);
    expect_matches_ref(Case({format}, {0}, block, 2, 9), e);
    expect_matches_ref(Case({format}, {5}, 0, 3, 9), e);
  }
}

TEST(IntLinear, PartsOfSeveralFormats) {
  TestExec e(3);
  for (const int64_t rows : {1, 2, 6})
    expect_matches_ref(
        Case({WeightFormat::q4_k, WeightFormat::q8_0, WeightFormat::q6_k}, {40, 7, 129}, 256, rows, 11), e);
}

// What a caller sees: close to the product with fp32 activations and the file's fp32 weights.
TEST(IntLinear, CloseToExactProducts) {
  TestExec e(2);
  for (const WeightFormat format : formats()) {
    Case c({format}, {24}, 768, 5, 13);
    Matrix exact(5, 24);
    linear_ref()[0].run(Linear{format, 24, 768}, {c.x.view(), c.weight[0].view, nullptr, exact.view()},
                        e.exec);
    const std::vector<Matrix> got = c.run(*plan(c.op, this_machine()).variant, e.exec);
    std::vector<float> w(768);
    for (int64_t o = 0; o < 24; ++o) {
      dequantize(c.weight[0].view, o, 0, 768, w.data());
      for (int64_t t = 0; t < 5; ++t) {
        double bound = (2 * 768 / 32.0 + 4 + 3) * 0x1p-24 * c.magnitude(0, t, o);
        for (int b = 0; b < 768 / 32; ++b) {
          double most = 0, weights = 0;
          for (int i = 0; i < 32; ++i) {
            most = std::max(most, std::fabs(double{c.x.get(t, b * 32 + i)}));
            weights += std::fabs(double{w[static_cast<size_t>(b * 32 + i)]});
          }
          bound += most * (1.0 / 32512 + 0x1p-22) * weights;
        }
        ASSERT_TRUE(test::close(got[0].get(t, o), exact.get(t, o), bound))
            << weight_format_info(format).name << ": " << got[0].get(t, o) << " for " << exact.get(t, o);
      }
    }
  }
}

// The largest integers there are: nothing saturates or wraps.
TEST(IntLinear, LargestIntegersAreExact) {
  TestExec e(1);
  for (const WeightFormat format : {WeightFormat::q8_0, WeightFormat::q6_k}) {
    const int32_t in = 256;
    for (const int64_t rows : {1, 5}) {
      Case c({format}, {8}, in, rows, 17);
      auto* codes = c.weight[0].codes.data() + 1;
      for (int32_t o = 0; o < 8; ++o) {
        std::byte* row = codes + o * c.weight[0].view.row_bytes;
        std::memset(row, 0, static_cast<size_t>(c.weight[0].view.row_bytes));
        for (int i = 0; format == WeightFormat::q8_0 && i < in / 32; ++i) {
          std::memset(row + i * 34, 0x80, 34);  // -128
          test::detail::put_half(row + i * 34, 1.0f);
        }
        if (format == WeightFormat::q6_k) {  // codes 0 - 32, scales -128
          std::memset(row + 192, 0x80, 16);
          test::detail::put_half(row + 208, 1.0f);
        }
      }
      for (auto& q : c.rows.q) q = kIntMost;
      for (auto& s : c.rows.scale) s = 1;
      for (auto& s : c.rows.shift) s = 32 * kIntMost;
      const float block = 32.0f * kIntMost * (format == WeightFormat::q8_0 ? -128.0f : 4096.0f);
      const std::vector<Matrix> got = c.run(*plan(c.op, this_machine()).variant, e.exec);
      for (int64_t t = 0; t < rows; ++t)
        for (int64_t o = 0; o < 8; ++o) ASSERT_EQ(got[0].get(t, o), 8 * block);
    }
  }
}

TEST(IntLinear, RowBitsDependOnTheRowAlone) {
  for (const WeightFormat format : formats()) {
    const Case c({format, WeightFormat::q4_1}, {75, 33}, 1024, 130, 99);
    const auto variants = fitting(int_linear_cpu(), c.op);
    if (variants.empty()) GTEST_SKIP() << "this CPU has no fast variant";
    TestExec one(1);
    const std::vector<Matrix> want = c.run(*variants[0], one.exec);
    for (const IntLinearVariant* v : variants)
      for (const int threads : {1, 2, 3, 4}) {
        TestExec e(threads);
        for (const int64_t n : {1, 2, 7, 16, 130})
          for (int64_t first = 0; first + n <= 130; first += std::max<int64_t>(n, 43)) {
            const std::vector<Matrix> y = c.run(*v, e.exec, first, n);
            for (size_t i = 0; i < y.size(); ++i)
              for (int64_t t = 0; t < n; ++t)
                ASSERT_TRUE(y[i].row_equal(t, want[i], first + t))
                    << v->name << " " << weight_format_info(format).name << ", " << threads << " threads, row "
                    << first + t << " of " << n;
          }
      }
  }
}

TEST(IntLinear, WorkspaceIsAsAnnounced) {
  const Case c({WeightFormat::q4_1}, {75}, 608, 9, 3);
  for (const IntLinearVariant* v : fitting(int_linear_cpu(), c.op)) {
    TestExec e(3);
    Arena arena(int_linear_workspace_bytes(c.op, 3));
    Exec exec{e.pool, arena};
    (void)c.run(*v, exec);  // aborts when the arena is too small
    EXPECT_EQ(arena.used_bytes(), 0);
  }
}

TEST(IntLinearDeathTest, RefusesWhatItsDescriptorExcludes) {
  EXPECT_DEATH((void)plan(IntLinear{64, 1, {{WeightFormat::bf16, 8}}}, this_machine()), "has no integer product");
  EXPECT_DEATH((void)plan(IntLinear{48, 1, {{WeightFormat::q4_1, 8}}}, this_machine()), "48 columns cut a block");
  EXPECT_DEATH((void)plan(IntRows{33}, this_machine()), "33 channels in blocks of 32");
}

}  // namespace
}  // namespace gannet
