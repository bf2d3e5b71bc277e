#include "kernels/rope.h"

#include <gtest/gtest.h>

#include "support/kernels.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;

struct Case {
  Rope op;
  Matrix x;
  std::vector<int32_t> pos;
  std::vector<float> frequency;

  Case(const Rope& o, int32_t rows) : op(o), x(rows, int64_t{o.heads} * o.head_dim, o.x, 3, 1) {
    Random random(static_cast<uint64_t>(rows + o.head_dim));
    x.fill(random);
    for (int32_t t = 0; t < rows; ++t) pos.push_back(t == 0 ? 0 : random.below(1'000'000));
    for (int32_t i = 0; i < o.rotary / 2; ++i)
      frequency.push_back(static_cast<float>(std::pow(10000.0, -2.0 * i / o.rotary)));
  }
};

TEST(Rope, EveryVariantEqualsTheFormula) {
  test::TestExec e(3);
  for (const int32_t rows : {0, 1, 7, 130})
    for (const bool interleaved : {false, true})
      for (const bool inverse : {false, true})
        for (const DType type : {DType::f32, DType::bf16})
          for (const auto& [begin, rotary] : {std::pair{0, 64}, {16, 48}, {3, 2}, {0, 0}}) {
            const Rope op{3, 64, begin, rotary, interleaved, inverse, type};
            for (const bool with_table : {false, true})
              for (const auto variants : {rope_cpu(), rope_ref()})
                for (const auto& v : variants) {
                  if (!v.fits(op, this_machine())) continue;
                  Case c(op, rows), before(op, rows);
                  std::vector<float> table(static_cast<size_t>(rows * rotary + 1));
                  if (with_table)
                    rope_table(c.pos.data(), rows, c.frequency.data(), rotary / 2, table.data(), e.exec);
                  v.run(op, {c.x.heads(3), c.pos.data(), c.frequency.data(), with_table ? table.data() : nullptr},
                        e.exec);
                  ASSERT_TRUE(c.x.canaries_intact());
                  for (int32_t t = 0; t < rows; ++t)
                    for (int32_t h = 0; h < 3; ++h) {
                      const int32_t n = rotary / 2;
                      std::vector<bool> rotated(64);
                      for (int32_t i = 0; i < n; ++i) {
                        const int32_t a_at = begin + (interleaved ? 2 * i : i), b_at = a_at + (interleaved ? 1 : n);
                        rotated[static_cast<size_t>(a_at)] = rotated[static_cast<size_t>(b_at)] = true;
                        const float angle =
                            static_cast<float>(c.pos[static_cast<size_t>(t)]) * c.frequency[static_cast<size_t>(i)];
                        const auto cosine = static_cast<float>(std::cos(double{angle}));
                        const auto sine = static_cast<float>(std::sin(inverse ? -double{angle} : double{angle}));
                        const float a = before.x.get(t, h * 64 + a_at), b = before.x.get(t, h * 64 + b_at);
                        float first = a * cosine - b * sine, second = a * sine + b * cosine;
                        if (type == DType::bf16) first = round_bf16(first), second = round_bf16(second);
                        ASSERT_EQ(c.x.get(t, h * 64 + a_at), first) << v.name;
                        ASSERT_EQ(c.x.get(t, h * 64 + b_at), second) << v.name;
                      }
                      for (int32_t i = 0; i < 64; ++i) {
                        if (rotated[static_cast<size_t>(i)]) continue;
                        ASSERT_EQ(c.x.get(t, h * 64 + i), before.x.get(t, h * 64 + i));
                      }
                    }
                }
          }
}

}  // namespace
}  // namespace gannet
