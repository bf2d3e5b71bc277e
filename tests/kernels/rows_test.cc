// The ops that treat each row alone: embedding, gated activation, add, gather, cache append.
#include <gtest/gtest.h>

#include "kernels/add.h"
#include "kernels/embedding.h"
#include "kernels/gated_activation.h"
#include "kernels/kv_append.h"
#include "kernels/row_gather.h"
#include "support/kernels.h"

namespace gannet {
namespace {

using test::Matrix;
using test::Random;
using test::TestExec;

TEST(Embedding, EveryVariantIsExactInEveryFormat) {
  TestExec e(3);
  for (const WeightFormat format : test::all_formats())
    for (const DType type : {DType::f32, DType::bf16})
      for (const float scale : {1.0f, 24.0f}) {
        const int32_t block = weight_format_info(format).block_elements, width = block == 1    ? 77
                                                                                 : block == 32 ? 96
                                                                                               : 512;
        const test::Weight table = test::make_weight(format, 64, width, 7, block == 1 ? 4 : 3);
        Matrix embeds(4, width);
        Random random(1);
        embeds.fill(random);
        std::vector<int32_t> token, row_embed;
        for (int32_t t = 0; t < 37; ++t) {
          token.push_back(random.below(64));
          row_embed.push_back(t % 5 == 3 ? random.below(4) : -1);
        }
        const Embedding op{format, width, scale, type};
        std::vector<float> w(static_cast<size_t>(width));
        for (const auto variants : {embedding_cpu(), embedding_ref()})
          for (const auto& v : variants) {
            if (!v.fits(op, this_machine())) continue;
            Matrix out(37, width, type, 3, 1);
            v.run(op, {table.view, token.data(), row_embed.data(), embeds.view(), out.view()}, e.exec);
            ASSERT_TRUE(out.canaries_intact());
            for (int32_t t = 0; t < 37; ++t) {
              dequantize(table.view, token[static_cast<size_t>(t)], 0, width, w.data());
              for (int32_t i = 0; i < width; ++i) {
                const int32_t row = row_embed[static_cast<size_t>(t)];
                float want = row < 0 ? w[static_cast<size_t>(i)] * scale : embeds.get(row, i);
                if (type == DType::bf16) want = round_bf16(want);
                ASSERT_EQ(out.get(t, i), want) << v.name << " " << weight_format_info(format).name;
              }
            }
          }
      }
}

TEST(EmbeddingDeathTest, TokenOutOfRange) {
  TestExec e(1);
  const test::Weight table = test::make_weight(WeightFormat::f32, 4, 8, 7);
  Matrix out(1, 8);
  const int32_t token = 4;
  EXPECT_DEATH(
      plan(Embedding{WeightFormat::f32, 8}, this_machine())({table.view, &token, nullptr, {}, out.view()}, e.exec),
      "token 4 of 4");
}

TEST(GatedActivation, EveryVariantWithinItsBound) {
  TestExec e;
  for (const Activation activation : {Activation::silu, Activation::gelu_tanh})
    for (const int32_t width : {1, 16, 33, 576})
      for (const float limit : {0.0f, 2.0f})
        for (const DType type : {DType::f32, DType::bf16})
          for (const bool scaled : {false, true}) {
            const GatedActivation op{activation, width, limit, type, type};
            Matrix both(9, 2 * width, type, 1, 1);
            Random random(static_cast<uint64_t>(width));
            both.fill(random, 8);
            const float extremes[] = {0.0f, -0.0f, 100.0f, -100.0f, 1e-30f, -88.2f, 88.5f, 1e20f, -1e20f};
            for (int64_t t = 0; t < 9; ++t) both.set(t, 0, extremes[t]);
            const std::vector<float> row_scale = {1, 0.5f, 2, 3, 0.1f, 1, 1, 1, 0};
            const View gate = both.view().columns(0, width), up = both.view().columns(width, width);
            const float* scale = scaled ? row_scale.data() : nullptr;
            Matrix want(9, width, type, 2, 1);
            gated_activation_ref()[0].run(op, {gate, up, scale, want.view()}, e.exec);
            std::vector<Matrix> all;
            for (const auto& v : gated_activation_cpu()) {
              if (!v.fits(op, this_machine())) continue;
              Matrix got(9, width, type, 2, 1);
              v.run(op, {gate, up, scale, got.view()}, e.exec);
              ASSERT_TRUE(got.canaries_intact());
              for (int64_t t = 0; t < 9; ++t)
                for (int64_t i = 0; i < width; ++i) {
                  double g = both.get(t, i), u = both.get(t, width + i);
                  if (limit > 0) g = std::min(g, double{limit}), u = std::clamp(u, -double{limit}, double{limit});
                  const double by = scaled ? double{row_scale[static_cast<size_t>(t)]} : 1.0, w = want.get(t, i);
                  const double size = activation == Activation::silu ? std::fabs(w) : std::fabs(g * u * by);
                  // e^x is taken as 0 below -87 and as infinity above 88.37: there x e^-|x| < 1e-35.
                  ASSERT_TRUE(
                      test::close(got.get(t, i), w, 1e-6 * size + test::ulp(w, type) + 1e-35 * std::fabs(u)))
                      << v.name << " gate " << g << " up " << u << ": " << got.get(t, i) << " for " << w;
                }
              all.push_back(std::move(got));
            }
            for (size_t i = 1; i < all.size(); ++i)
              for (int64_t t = 0; t < 9; ++t) ASSERT_TRUE(all[i].row_equal(t, all[0], t));
          }
}

TEST(Add, EveryVariantIsExactAndMayRunInPlace) {
  TestExec e;
  for (const int32_t rows : {0, 1, 130})
    for (const int32_t width : {1, 16, 61})
      for (const DType a : {DType::f32, DType::bf16})
        for (const DType b : {DType::f32, DType::bf16})
          for (const auto variants : {add_cpu(), add_ref()})
            for (const auto& v : variants) {
              const Add op{width, a, b, a};
              if (!v.fits(op, this_machine())) continue;
              Matrix x(rows, width, a, 1, 1), y(rows, width, b, 2, 1), out(rows, width, a, 3, 1);
              Random random(3);
              x.fill(random);
              y.fill(random);
              v.run(op, {x.view(), y.view(), out.view()}, e.exec);
              ASSERT_TRUE(out.canaries_intact());
              for (int64_t t = 0; t < rows; ++t)
                for (int64_t i = 0; i < width; ++i) {
                  const float sum = x.get(t, i) + y.get(t, i);
                  ASSERT_EQ(out.get(t, i), a == DType::bf16 ? round_bf16(sum) : sum) << v.name;
                }
              v.run(op, {x.view(), y.view(), x.view()}, e.exec);
              for (int64_t t = 0; t < rows; ++t) ASSERT_TRUE(x.row_equal(t, out, t)) << v.name;
            }
}

TEST(RowGather, GatherAndScatterUndoEachOther) {
  TestExec e(3);
  for (const auto variants : {row_gather_cpu(), row_gather_ref()})
    for (const auto& v : variants)
      for (const DType type : {DType::f32, DType::bf16}) {
        Matrix x(50, 12, type, 1, 1), some(17, 12, type, 2, 1), back(50, 12, type, 3, 1);
        Random random(4);
        x.fill(random);
        std::vector<int32_t> index;
        for (int32_t i = 0; i < 17; ++i) index.push_back(i * 29 % 50);
        v.run(RowGather{false}, {x.view(), index, some.view()}, e.exec);
        v.run(RowGather{true}, {some.view(), index, back.view()}, e.exec);
        ASSERT_TRUE(some.canaries_intact() && back.canaries_intact());
        for (int32_t t = 0; t < 50; ++t) {
          const bool moved = std::find(index.begin(), index.end(), t) != index.end();
          if (moved)
            ASSERT_TRUE(back.row_equal(t, x, t)) << v.name;
          else
            ASSERT_TRUE(std::isnan(back.get(t, 0))) << v.name;
        }
        for (int32_t i = 0; i < 17; ++i) ASSERT_TRUE(some.row_equal(i, x, index[static_cast<size_t>(i)]));
        v.run(RowGather{false}, {x.view().rows(0, 0), {}, some.view().rows(0, 0)}, e.exec);
      }
}

TEST(RowGatherDeathTest, IndexOutOfRange) {
  TestExec e(1);
  Matrix x(3, 4), out(1, 4);
  const std::vector<int32_t> index = {3};
  EXPECT_DEATH(plan(RowGather{}, this_machine())({x.view(), index, out.view()}, e.exec), "row 3 of 3");
}

TEST(KvAppend, WritesTheRowsOfThePositionsAndNothingElse) {
  TestExec e(2);
  for (const RowFormat format : {RowFormat::f32, RowFormat::f16, RowFormat::bf16})
    for (const DType x_type : {DType::f32, DType::bf16})
      for (const auto variants : {kv_append_cpu(), kv_append_ref()})
        for (const auto& v : variants) {
          const KvAppend op{24, x_type, format};
          if (!v.fits(op, this_machine())) continue;
          // Two sequences of up to 3 blocks of 4 rows over a pool of 7.
          const std::vector<int32_t> table = {5, 0, 3, 2, 6, 1};
          const int32_t row_bytes = row_code_bytes(format, 24);
          const int64_t block_bytes = 4 * row_bytes + 32;
          std::vector<std::byte> pool(static_cast<size_t>(7 * block_bytes), std::byte{0xA5}), want = pool;
          const PagedRows plane{pool.data(), table.data(), 3, 4, block_bytes, 16, 0, 24, format};
          const std::vector<int32_t> seq = {0, 0, 1, 1, 1}, pos = {3, 4, 9, 10, 11};
          Matrix x(5, 24, x_type, 2, 1);
          Random random(8);
          x.fill(random);
          x.set(0, 0, 1e-6f);
          x.set(1, 0, 70000.0f);
          v.run(op, {x.view(), seq.data(), pos.data(), plane}, e.exec);
          for (size_t t = 0; t < 5; ++t) {
            const int64_t block = table[static_cast<size_t>(seq[t] * 3 + pos[t] / 4)];
            std::byte* at = want.data() + block * block_bytes + 16 + pos[t] % 4 * row_bytes;
            const DType type = format == RowFormat::f32   ? DType::f32
                               : format == RowFormat::f16 ? DType::f16
                                                          : DType::bf16;
            for (int64_t i = 0; i < 24; ++i)
              test::store(at + i * dtype_bytes(type), type, x.get(static_cast<int64_t>(t), i));
          }
          ASSERT_EQ(pool, want) << v.name;
        }
}

}  // namespace
}  // namespace gannet
