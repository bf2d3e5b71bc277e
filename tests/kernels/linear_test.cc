#include "kernels/linear.h"

#include <gtest/gtest.h>

#include "support/kernels.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;
using test::TestExec;

std::vector<const LinearVariant*> fast_variants(const Linear& op) {
  std::vector<const LinearVariant*> variants;
  for (const LinearVariant& v : linear_cpu())
    if (v.fits(op, this_machine())) variants.push_back(&v);
  return variants;
}

struct Shape {
  int32_t rows, out, in, groups;
};

struct Case {
  Linear op;
  test::Weight weight;
  std::vector<float> bias;
  Matrix x;

  Case(WeightFormat format, const Shape& s, DType x_type, DType y_type, bool with_bias, uint64_t seed)
      : op{format, s.out, s.in, s.groups, x_type, y_type},
        weight(test::make_weight(format, s.out * s.groups, s.in, seed, format == WeightFormat::f32 ? 4 : 2)),
        x(s.rows, int64_t{s.in} * s.groups, x_type, 3, 1) {
    Random random(seed + 1);
    x.fill(random);
    if (with_bias)
      for (int32_t o = 0; o < s.out * s.groups; ++o) bias.push_back(random.unit());
  }
  Matrix empty_y() const { return {x.rows(), int64_t{op.out} * op.groups, op.y, 5, 1}; }
  void run(const LinearVariant& v, Matrix& y, Exec& exec, int32_t first = 0, int32_t n = -1) {
    const View all = x.view();
    v.run(op,
          {all.rows(first, n < 0 ? all.dim(0) : n), weight.view, bias.empty() ? nullptr : bias.data(), y.view()},
          exec);
  }
  // sum_k |x_k W_k| of each element.
  double magnitude(int64_t t, int64_t o, std::vector<float>& w) const {
    dequantize(weight.view, o, 0, op.in, w.data());
    double sum = 0;
    for (int64_t k = 0; k < op.in; ++k)
      sum += std::fabs(double{x.get(t, o / op.out * op.in + k)} * double{w[static_cast<size_t>(k)]});
    return sum;
  }
};

void expect_matches_ref(TestExec& e, WeightFormat format, const Shape& s, DType x_type, DType y_type,
                        bool with_bias) {
  Case c(format, s, x_type, y_type, with_bias, static_cast<uint64_t>(s.rows * 7919 + s.out * 31 + s.in));
  Matrix want = c.empty_y();
  c.run(linear_ref()[0], want, e.exec);
  ASSERT_TRUE(want.canaries_intact());
  std::vector<Matrix> got;
  const auto variants = fast_variants(c.op);
  for (const LinearVariant* v : variants) {
    got.push_back(c.empty_y());
    c.run(*v, got.back(), e.exec);
    ASSERT_TRUE(got.back().canaries_intact()) << v->name;
  }
  std::vector<float> w(static_cast<size_t>(s.in) + 1);
  for (int64_t o = 0; o < want.width(); ++o)
    for (int64_t t = 0; t < s.rows; ++t) {
      const double bound = (s.in / 16.0 + 5) * 0x1p-24 * (c.magnitude(t, o, w) + (with_bias ? 1 : 0)) +
                           test::ulp(want.get(t, o), y_type);  // half for each of the two roundings
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(test::close(got[i].get(t, o), want.get(t, o), bound))
            << variants[i]->name << " " << weight_format_info(format).name << " [" << s.rows << ", " << s.out
            << ", " << s.in << "] x " << s.groups << " at " << t << ", " << o << ": " << got[i].get(t, o) << " for "
            << want.get(t, o) << ", bound " << bound;
    }
  for (size_t i = 1; i < got.size(); ++i)
    for (int64_t t = 0; t < s.rows; ++t)
      ASSERT_TRUE(got[i].row_equal(t, got[0], t)) << variants[i]->name << " differs from " << variants[0]->name;
  EXPECT_EQ(e.arena.used_bytes(), 0);
}

TEST(Linear, EveryVariantMatchesRefInEveryFormat) {
  TestExec e;
  for (const WeightFormat format : test::all_formats()) {
    const int32_t block = weight_format_info(format).block_elements;
    const int32_t in = block == 1 ? 67 : block == 32 ? 96 : 512;
    for (const int32_t rows : {0, 1, 2, 3, 4, 5, 7, 13})
      expect_matches_ref(e, format, {rows, 35, in, 1}, DType::f32, DType::f32, rows % 2 == 1);
    expect_matches_ref(e, format, {1, 1, block == 1 ? 1 : block, 1}, DType::f32, DType::f32, false);
    expect_matches_ref(e, format, {3, 0, in, 1}, DType::f32, DType::f32, false);
    expect_matches_ref(e, format, {3, 5, 0, 1}, DType::f32, DType::f32, true);
    expect_matches_ref(e, format, {5, 67, block == 256 ? 2304 : 2080, 1}, DType::bf16, DType::bf16, true);
  }
}

TEST(Linear, TileEdges) {
  TestExec e;
  for (const int32_t rows : {1, 4, 5, 6, 7, 12, 17})
    for (const int32_t out : {1, 3, 4, 5, 31, 64, 129})
      for (const int32_t in : {1, 15, 16, 17, 31, 33, 63, 576})
        expect_matches_ref(e, WeightFormat::bf16, {rows, out, in, 1}, DType::f32, DType::f32, false);
}

TEST(Linear, Groups) {
  TestExec e;
  for (const int32_t rows : {1, 4, 9})
    for (const WeightFormat format : {WeightFormat::f32, WeightFormat::q4_1, WeightFormat::fp8_32x32})
      for (const DType type : {DType::f32, DType::bf16})
        expect_matches_ref(e, format, {rows, 32, 96, 5}, type, type, true);
}

// A row's bits: the same at every number of rows, of threads, and on every instruction set.
TEST(Linear, RowBitsDependOnTheRowAlone) {
  for (const WeightFormat format : test::all_formats())
    for (const DType type : {DType::f32, DType::bf16}) {
      const int32_t in = weight_format_info(format).block_elements == 256 ? 768 : 608;
      Case c(format, {130, 75, in, 1}, type, type, true, 99);
      TestExec one(1);
      const auto variants = fast_variants(c.op);
      if (variants.empty()) GTEST_SKIP() << "this CPU has no fast variant";
      Matrix want = c.empty_y();
      c.run(*variants[0], want, one.exec);
      for (const LinearVariant* v : variants)
        for (const int threads : {1, 2, 3, 4}) {
          TestExec e(threads);
          for (const int32_t n : {1, 2, 7, 16, 130}) {
            if (n == 130 && threads == 1 && v == variants[0]) continue;
            Matrix y(n, 75, type, 5, 1);
            for (int32_t first = 0; first + n <= 130; first += std::max(n, 43)) {
              c.run(*v, y, e.exec, first, n);
              for (int32_t t = 0; t < n; ++t)
                ASSERT_TRUE(y.row_equal(t, want, first + t))
                    << v->name << " " << weight_format_info(format).name << ", " << threads << " threads, row "
                    << first + t << " of " << n;
            }
          }
        }
    }
}

TEST(Linear, WorkspaceIsAsAnnounced) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const int32_t rows : {1, 5, 130}) {
      Case c(WeightFormat::q4_1, {rows, 75, 608, 2}, type, type, false, 3);
      for (const LinearVariant* v : fast_variants(c.op)) {
        TestExec e(3);
        Arena arena(linear_workspace_bytes(c.op, rows, 3));
        Exec exec{e.pool, arena};
        Matrix y = c.empty_y();
        c.run(*v, y, exec);  // aborts when the arena is too small
        EXPECT_EQ(arena.used_bytes(), 0);
      }
    }
}

TEST(Linear, SpecialValuesOfTheReleasedEncodings) {
  // Every e4m3 code and every nibble under scales 0 (2^-127), 1, 127, 254 and 255 (NaN), one nonzero x at a time.
  for (const WeightFormat format : {WeightFormat::fp8_1x32, WeightFormat::mxfp4_1x32, WeightFormat::mxfp4_gguf}) {
    const int32_t in = 256;
    for (const int scale : {0, 1, 127, 254, 255}) {
      test::Weight w = test::make_weight(format, 1, in, 1);
      auto* codes = w.codes.data() + 1;
      const int per_byte = format == WeightFormat::fp8_1x32 ? 1 : 2;
      for (int i = 0; i < in / per_byte; ++i) {
        const int64_t at = format == WeightFormat::mxfp4_gguf ? i / 16 * 17 + 1 + i % 16 : i;
        codes[at] = static_cast<std::byte>(i);
      }
      for (auto& b : w.scales) b = static_cast<std::byte>(scale);
      if (format == WeightFormat::mxfp4_gguf)
        for (int i = 0; i < in / 32; ++i) codes[i * 17] = static_cast<std::byte>(scale);
      std::vector<float> value(in);
      dequantize(w.view, 0, 0, in, value.data());
      const Linear op{format, 1, in};
      TestExec e(1);
      for (const LinearVariant* v : fast_variants(op))
        for (const int32_t rows : {1, 9})
          for (int32_t k = 0; k < in; ++k) {
            // With a NaN or an infinity beside it a product with 0 is NaN: judge only blocks that are finite
            // elsewhere.
            bool others_finite = true;
            for (int32_t i = 0; i < in; ++i)
              others_finite = others_finite && (i == k || std::isfinite(value[static_cast<size_t>(i)]));
            if (!others_finite) continue;
            Matrix x(rows, in), y(rows, 1);
            for (int32_t t = 0; t < rows; ++t)
              for (int32_t i = 0; i < in; ++i) x.set(t, i, i == k ? 1.0f : 0.0f);
            v->run(op, {x.view(), w.view, nullptr, y.view()}, e.exec);
            for (int32_t t = 0; t < rows; ++t)
              ASSERT_TRUE(test::close(y.get(t, 0), value[static_cast<size_t>(k)], 0))
                  << v->name << " " << weight_format_info(format).name << " scale " << scale << " element " << k;
          }
    }
  }
}

TEST(LinearDeathTest, RefusesWhatItsDescriptorExcludes) {
  EXPECT_DEATH((void)plan(Linear{WeightFormat::q4_1, 8, 48}, this_machine()), "48 columns cut a block of 32");
  Case c(WeightFormat::f32, {2, 4, 8, 1}, DType::f32, DType::f32, false, 1);
  TestExec e(1);
  Matrix narrow(2, 3);
  EXPECT_DEATH(linear_ref()[0].run(c.op, {c.x.view(), c.weight.view, nullptr, narrow.view()}, e.exec), "");
}

}  // namespace
}  // namespace gannet
