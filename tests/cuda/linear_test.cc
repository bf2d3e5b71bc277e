// `linear` on a device against the scalar reference: the tensor-core form within its own bound, the lanes with the
// bits of the CPU.
#include "kernels/linear.h"

#include "cuda/device_case.h"

namespace gannet {
namespace {

using test::DeviceCase;
using test::DeviceMatrix;
using test::Matrix;

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
        weight(test::make_weight(format, s.out * s.groups, s.in, seed)),
        x(s.rows, int64_t{s.in} * s.groups, x_type, 8, 0) {
    test::Random random(seed + 1);
    x.fill(random);
    if (with_bias)
      for (int32_t o = 0; o < s.out * s.groups; ++o) bias.push_back(random.unit());
  }
  Matrix empty_y(int32_t rows) const { return {rows, int64_t{op.out} * op.groups, op.y, 5, 1}; }
};

// Rows [first, first + n) on the device, every element written, nothing beside them.
Matrix run_device(Case& c, const LinearVariant& v, int32_t first, int32_t n) {
  DeviceCase d;
  Matrix y = c.empty_y(n);
  DeviceMatrix x(d, c.x), out(d, y);
  Exec exec = d.exec();
  const float* bias = c.bias.empty() ? nullptr : d.put(c.bias);
  v.run(c.op, {x.view().rows(first, n), d.put(c.weight.view), bias, out.view()}, exec);
  out.fetch();
  EXPECT_TRUE(y.canaries_intact()) << v.name;
  return y;
}

const LinearVariant* variant(const Linear& op, std::string_view name) {
  Machine machine = this_machine();
  machine.device = test::device();
  for (const LinearVariant& v : linear_cuda())
    if (v.name == name && v.fits(op, machine)) return &v;
  return nullptr;
}

void expect_mma_matches_ref(WeightFormat format, const Shape& s, DType y_type, bool with_bias) {
  Case c(format, s, DType::bf16, y_type, with_bias, static_cast<uint64_t>(s.rows * 7919 + s.out * 31 + s.in));
  const LinearVariant* mma = variant(c.op, "mma");
  ASSERT_NE(mma, nullptr);
  const Matrix got = run_device(c, *mma, 0, s.rows);
  test::TestExec e(16);
  Matrix want = c.empty_y(s.rows);
  linear_ref()[0].run(c.op, {c.x.view(), c.weight.view, c.bias.empty() ? nullptr : c.bias.data(), want.view()},
                      e.exec);
  std::vector<float> w(static_cast<size_t>(s.in));
  double worst = 0;
  for (int64_t o = 0; o < want.width(); ++o) {
    dequantize(c.weight.view, o, 0, s.in, w.data());
    for (int64_t t = 0; t < s.rows; ++t) {
      double magnitude = with_bias ? 1 : 0;
      for (int64_t k = 0; k < s.in; ++k)
        magnitude += std::fabs(double{c.x.get(t, o / s.out * s.in + k)} * double{w[static_cast<size_t>(k)]});
      const double bound = (1.125 * s.in + 8) * 0x1p-23 * magnitude + test::ulp(want.get(t, o), y_type);
      ASSERT_TRUE(test::close(got.get(t, o), want.get(t, o), bound))
          << weight_format_info(format).name << " [" << s.rows << ", " << s.out << ", " << s.in << "] at " << t
          << ", " << o << ": " << got.get(t, o) << " for " << want.get(t, o) << ", bound " << bound;
      worst = std::max(worst, std::fabs(double{got.get(t, o)} - double{want.get(t, o)}) / magnitude);
    }
  }
  std::printf("%s [%d, %d, %d] x %d: largest error %.1f * 2^-24 of the sum of magnitudes\n",
              std::string(weight_format_info(format).name).c_str(), s.rows, s.out, s.in, s.groups, worst * 0x1p24);
}

constexpr WeightFormat kMmaFormats[] = {WeightFormat::fp8_32x32, WeightFormat::mxfp4_1x32, WeightFormat::bf16};

TEST(CudaLinear, TensorCoreFormMatchesRef) {
  GANNET_NEEDS_DEVICE();
  for (const WeightFormat format : kMmaFormats) {
    for (const int32_t rows : {1, 2, 7, 8, 9, 17, 33, 64, 65, 130})
      expect_mma_matches_ref(format, {rows, 96, 640, 1}, DType::f32, rows % 2 == 1);
    expect_mma_matches_ref(format, {3, 512, 5120, 1}, DType::f32, false);
    expect_mma_matches_ref(format, {5, 1280, 5120, 1}, DType::bf16, false);
    expect_mma_matches_ref(format, {9, 4096, 1280, 1}, DType::bf16, true);
    expect_mma_matches_ref(format, {6, 1024, 2304, 1}, DType::f32, false);
    expect_mma_matches_ref(format, {10, 64, 4096, 8}, DType::bf16, false);
    expect_mma_matches_ref(format, {4, 32, 128, 1}, DType::f32, false);
  }
}

TEST(CudaLinear, RowBitsDependOnTheRowAlone) {
  GANNET_NEEDS_DEVICE();
  for (const WeightFormat format : kMmaFormats)
    for (const Shape s : {Shape{130, 96, 2304, 1}, Shape{130, 3072, 640, 1}}) {
      Case c(format, s, DType::bf16, DType::f32, true, 99);
      const LinearVariant* mma = variant(c.op, "mma");
      const Matrix all = run_device(c, *mma, 0, s.rows), again = run_device(c, *mma, 0, s.rows);
      for (int32_t t = 0; t < s.rows; ++t) ASSERT_TRUE(again.row_equal(t, all, t));
      for (const int32_t n : {1, 2, 7, 16, 33})
        for (int32_t first = 0; first + n <= s.rows; first += std::max(n, 31)) {
          const Matrix y = run_device(c, *mma, first, n);
          for (int32_t t = 0; t < n; ++t)
            ASSERT_TRUE(y.row_equal(t, all, first + t))
                << weight_format_info(format).name << " row " << t << " of " << n;
        }
    }
}

// Every code under the scales that are hard: subnormal results, factors that need two products, NaN.
TEST(CudaLinear, EveryCodeIsExactInBf16) {
  GANNET_NEEDS_DEVICE();
  for (const WeightFormat format : {WeightFormat::fp8_32x32, WeightFormat::mxfp4_1x32})
    for (const int scale : {20, 118, 127, 128, 134, 135, 140}) {
      const int32_t in = 256;
      Case c(format, {1, 32, in, 1}, DType::bf16, DType::f32, false, 5);
      auto* codes = c.weight.codes.data() + (c.weight.view.codes - c.weight.codes.data());
      for (int64_t o = 0; o < 32; ++o)
        for (int64_t i = 0; i < (format == WeightFormat::fp8_32x32 ? in : in / 2); ++i) {
          const auto code = static_cast<int>((i + 8 * o) & 255);
          const bool nan = format == WeightFormat::fp8_32x32 && (code & 127) == 127;
          codes[o * c.weight.view.row_bytes + i] = static_cast<std::byte>(nan ? 0 : code);
        }
      for (std::byte& b : c.weight.scales) b = static_cast<std::byte>(scale);
      const LinearVariant* mma = variant(c.op, "mma");
      std::vector<float> w(in);
      for (int32_t k = 0; k < in; k += 13) {  // one column at a time: no sum, so no rounding
        for (int32_t i = 0; i < in; ++i) c.x.set(0, i, i == k ? 1.0f : 0.0f);
        const Matrix y = run_device(c, *mma, 0, 1);
        for (int64_t o = 0; o < 32; ++o) {
          dequantize(c.weight.view, o, 0, in, w.data());
          ASSERT_EQ(y.get(0, o), w[static_cast<size_t>(k)])
              << weight_format_info(format).name << " scale " << scale;
        }
      }
    }
}

TEST(CudaLinear, LanesGiveTheBitsOfTheCpu) {
  GANNET_NEEDS_DEVICE();
  const LinearVariant& cpu = linear_cpu()[0];
  int n_compared = 0;
  for (const WeightFormat format : test::all_formats())
    for (const DType type : {DType::f32, DType::bf16})
      for (const int32_t rows : {1, 5, 17}) {
        const int32_t block = weight_format_info(format).block_elements;
        Case c(format, {rows, 75, block == 1 ? 613 : 608, 1}, type, type, true, 7);
        const LinearVariant* lanes = variant(c.op, "lanes");
        if (lanes == nullptr || block == 256) continue;
        ASSERT_TRUE(cpu.fits(c.op, this_machine()));
        test::TestExec e(1);
        Matrix want = c.empty_y(rows);
        cpu.run(c.op, {c.x.view(), c.weight.view, c.bias.data(), want.view()}, e.exec);
        const Matrix got = run_device(c, *lanes, 0, rows);
        for (int32_t t = 0; t < rows; ++t)
          ASSERT_TRUE(got.row_equal(t, want, t))
              << weight_format_info(format).name << " row " << t << " of " << rows;
        ++n_compared;
      }
  EXPECT_GE(n_compared, 9 * 6);
}

}  // namespace
}  // namespace gannet
