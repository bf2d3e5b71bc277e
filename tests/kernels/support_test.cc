#include <gtest/gtest.h>

#include "support/kernels.h"

namespace gannet::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Close, AcceptsUpToTheBound) {
  EXPECT_TRUE(close(1.0, 1.0, 0));
  EXPECT_TRUE(close(1.5, 1.0, 0.5));
  EXPECT_FALSE(close(1.5001, 1.0, 0.5));
  EXPECT_FALSE(close(-1.0, 1.0, 1.5));
  EXPECT_TRUE(close(0.0, -0.0, 0));
}

TEST(Close, NanAndInfinityPassOnlyWhereWanted) {
  EXPECT_FALSE(close(kNan, 1.0, 1e30));
  EXPECT_FALSE(close(1.0, kNan, 1e30));
  EXPECT_TRUE(close(kNan, kNan, 0));
  EXPECT_TRUE(close(kInf, kInf, 0));
  EXPECT_FALSE(close(-kInf, kInf, kInf));
  EXPECT_FALSE(close(1e38, kInf, kInf));
  EXPECT_FALSE(close(kInf, 1e38, 1e300));
  EXPECT_FALSE(close(1.0, 1.0, kNan));
}

TEST(Ulp, IsTheSpacingOfTheType) {
  EXPECT_EQ(ulp(1.0, DType::f32), 0x1p-23);
  EXPECT_EQ(ulp(1.999, DType::f32), 0x1p-23);
  EXPECT_EQ(ulp(-2.0, DType::f32), 0x1p-22);
  EXPECT_EQ(ulp(1.0, DType::bf16), 0x1p-7);
  EXPECT_EQ(ulp(1.0, DType::f16), 0x1p-10);
  EXPECT_EQ(ulp(0.0, DType::f32), 0x1p-149);
}

TEST(Matrix, SeesWritesOutsideItsElements) {
  Matrix m(3, 5, DType::f32, 2, 1);
  EXPECT_TRUE(std::isnan(m.get(2, 4)));
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 5; ++c) m.set(r, c, 0);
  EXPECT_TRUE(m.canaries_intact());
  for (const int64_t column : {int64_t{-1}, int64_t{5}, int64_t{6}}) {
    const float kept = m.get(1, column);
    m.set(1, column, 0);
    EXPECT_FALSE(m.canaries_intact()) << column;
    m.set(1, column, kept);
    EXPECT_TRUE(m.canaries_intact());
  }
}

TEST(Matrix, MisalignsBySoManyElements) {
  Matrix m(1, 4, DType::bf16, 0, 3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(m.at(0, 0)) % 64, 6U);
}

TEST(MakeWeight, ValuesAreFiniteAndVaried) {
  for (const WeightFormat format : all_formats()) {
    const Weight w = make_weight(format, 33, 512, 5, 3);
    std::vector<float> row(512);
    float least = 0, most = 0;
    for (int32_t o = 0; o < 33; ++o) {
      dequantize(w.view, o, 0, 512, row.data());
      for (const float v : row) {
        ASSERT_TRUE(std::isfinite(v)) << weight_format_info(format).name;
        least = std::min(least, v);
        most = std::max(most, v);
      }
    }
    EXPECT_LT(least, most) << weight_format_info(format).name;
  }
}

}  // namespace
}  // namespace gannet::test
