// Row ops and grouped attention on a device: every one promises the operations of the CPU, so bits are compared
// with the CPU's variant.
#include "cuda/device_case.h"
#include "kernels/add.h"
#include "kernels/attention_gqa.h"
#include "kernels/embedding.h"
#include "kernels/gated_activation.h"
#include "kernels/kv_append.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/row_gather.h"

namespace gannet {
namespace {

using test::DeviceCase;
using test::DeviceMatrix;
using test::Matrix;

Matrix random_matrix(int64_t rows, int64_t width, DType type, uint64_t seed, float scale = 1) {
  Matrix m(rows, width, type, 3, 1);
  test::Random random(seed);
  m.fill(random, scale);
  return m;
}

void expect_rows_equal(const Matrix& got, const Matrix& want, const char* what) {
  ASSERT_TRUE(got.canaries_intact()) << what;
  for (int64_t r = 0; r < want.rows(); ++r) ASSERT_TRUE(got.row_equal(r, want, r)) << what << " row " << r;
}

// Runs `op` on the CPU and on the device; `call(view of a matrix by index)` fills the arguments.
template <class Op, class Call>
void expect_same(const Op& op, std::vector<Matrix*> inputs, Matrix& want, Matrix& got, const Call& call) {
  test::TestExec e(1);
  DeviceCase d;
  std::vector<DeviceMatrix> on_device;
  for (Matrix* m : inputs) on_device.emplace_back(d, *m);
  DeviceMatrix out(d, got);
  Exec exec = d.exec();
  plan(op, this_machine())(call([&](size_t i) { return inputs[i]->view(); }, want.view(), e.exec), e.exec);
  plan(op, d.machine())(call([&](size_t i) { return on_device[i].view(); }, out.view(), exec), exec);
  out.fetch();
  expect_rows_equal(got, want, typeid(Op).name());
}

TEST(CudaRows, ElementwiseAndNormsGiveTheBitsOfTheCpu) {
  GANNET_NEEDS_DEVICE();
  for (const DType type : {DType::f32, DType::bf16})
    for (const int32_t rows : {0, 1, 7, 130})
      for (const int32_t width : {1, 15, 576, 5120}) {
        Matrix x = random_matrix(rows, width, type, 1, 8), y = random_matrix(rows, width, type, 2, 8);
        Matrix want(rows, width, type, 5, 1), got(rows, width, type, 5, 1);
        expect_same(Add{width, type, type, type}, {&x, &y}, want, got, [&](const auto& in, View out, Exec&) {
          return AddArgs{in(0), in(1), out};
        });
        for (const float limit : {0.0f, 3.0f})
          for (const Activation a : {Activation::silu, Activation::gelu_tanh}) {
            Matrix w(rows, width, type, 5, 1), g(rows, width, type, 5, 1);
            expect_same(GatedActivation{a, width, limit, type, type}, {&x, &y}, w, g,
                        [&](const auto& in, View out, Exec&) {
                          return GatedActivationArgs{in(0), in(1), nullptr, out};
                        });
          }
        Matrix w(rows, width, type, 5, 1), g(rows, width, type, 5, 1);
        expect_same(RmsNorm{width, 1e-5f, 0, type, type}, {&x}, w, g, [&](const auto& in, View out, Exec&) {
          return RmsNormArgs{in(0), nullptr, out};
        });
      }
}

TEST(CudaRows, RopeWithItsTable) {
  GANNET_NEEDS_DEVICE();
  const int32_t rows = 33, heads = 3, width = 64;
  std::vector<int32_t> pos;
  std::vector<float> frequency;
  for (int32_t t = 0; t < rows; ++t) pos.push_back(t * 997);
  for (int32_t i = 0; i < width / 2; ++i) frequency.push_back(std::pow(10000.0f, -static_cast<float>(i) / 32));
  for (const DType type : {DType::f32, DType::bf16})
    for (const bool interleaved : {false, true})
      for (const bool inverse : {false, true}) {
        Matrix want = random_matrix(rows, heads * width, type, 3),
               got = random_matrix(rows, heads * width, type, 3);
        const Rope op{heads, width, 0, width, interleaved, inverse, type};
        test::TestExec e(1);
        DeviceCase d;
        Exec exec = d.exec();
        DeviceMatrix x(d, got);
        const int32_t* pos_at = d.put(pos);
        const float* frequency_at = d.put(frequency);
        std::vector<float> table(static_cast<size_t>(rows * width));
        rope_table(pos.data(), rows, frequency.data(), width / 2, table.data(), e.exec);
        auto* table_at = reinterpret_cast<float*>(d.allocate(rows * width * 4));
        rope_table(pos_at, rows, frequency_at, width / 2, table_at, exec);
        plan(op, this_machine())({want.heads(heads), nullptr, nullptr, table.data()}, e.exec);
        plan(op, d.machine())({x.heads(heads), nullptr, nullptr, table_at}, exec);
        x.fetch();
        expect_rows_equal(got, want, "rope");
      }
}

TEST(CudaRows, EmbeddingAndGather) {
  GANNET_NEEDS_DEVICE();
  const std::vector<int32_t> token = {5, 0, 99, 5, 31, 98};
  for (const WeightFormat format :
       {WeightFormat::f32, WeightFormat::bf16, WeightFormat::q4_1, WeightFormat::q8_0}) {
    const test::Weight table = test::make_weight(format, 100, 576, 4);
    Matrix want(6, 576, DType::f32, 5, 1), got(6, 576, DType::f32, 5, 1);
    test::TestExec e(1);
    DeviceCase d;
    Exec exec = d.exec();
    DeviceMatrix out(d, got);
    const Embedding op{format, 576, 1.5f, DType::f32};
    plan(op, this_machine())({table.view, token.data(), nullptr, {}, want.view()}, e.exec);
    plan(op, d.machine())({d.put(table.view), d.put(token), nullptr, {}, out.view()}, exec);
    out.fetch();
    expect_rows_equal(got, want, "embedding");
  }
  for (const bool scatter : {false, true}) {
    Matrix x = random_matrix(6, 77, DType::bf16, 6), want(6, 77, DType::bf16, 5, 1), got(6, 77, DType::bf16, 5, 1);
    const std::vector<int32_t> index = {3, 1, 0, 5, 4, 2};
    test::TestExec e(1);
    DeviceCase d;
    Exec exec = d.exec();
    DeviceMatrix from(d, x), out(d, got);
    plan(RowGather{scatter}, this_machine())({x.view(), index, want.view()}, e.exec);
    const int32_t* at = d.put(index);
    plan(RowGather{scatter}, d.machine())({from.view(), {at, index.size()}, out.view()}, exec);
    out.fetch();
    expect_rows_equal(got, want, "row_gather");
  }
}

// Rows of two sequences appended and attended to, over a shuffled block table.
TEST(CudaRows, AppendAndGroupedAttention) {
  GANNET_NEEDS_DEVICE();
  const int32_t per_block = 16, n_blocks = 80;
  for (const RowFormat format : {RowFormat::f16, RowFormat::bf16, RowFormat::f32})
    for (const auto& [heads, groups, width, window] : {std::tuple{9, 3, 64, 0}, {4, 1, 128, 100}, {8, 8, 16, 0}}) {
      const int32_t kv = groups * width, row_bytes = row_code_bytes(format, kv);
      const int64_t block_bytes = int64_t{2} * per_block * row_bytes;
      std::vector<std::byte> pool(static_cast<size_t>(block_bytes * n_blocks), std::byte{0xFF});
      std::vector<int32_t> table, seq, pos;
      for (int32_t b = 0; b < n_blocks; ++b) table.push_back(b * 37 % n_blocks);
      for (const auto& [s, n] : {std::pair{0, 600}, {1, 3}})
        for (int32_t p = 0; p < n; ++p) seq.push_back(s), pos.push_back(p);
      const auto T = static_cast<int32_t>(seq.size());
      Matrix k = random_matrix(T, kv, DType::f32, 7), v = random_matrix(T, kv, DType::f32, 8),
             q = random_matrix(T, heads * width, DType::f32, 9, 3);
      Matrix want(T, heads * width, DType::f32, 5, 1), got(T, heads * width, DType::f32, 5, 1);
      DeviceCase d;
      std::byte* pool_at = d.put(pool);
      const int32_t* table_at = d.put(table);
      PagedRows key{pool.data(), table.data(), n_blocks / 2, per_block, block_bytes, 0, 0, kv, format}, value = key;
      value.codes_offset = block_bytes / 2;
      const AttentionGqa op{heads, groups, width, window, 0.125f, format, DType::f32, DType::f32};
      const auto run = [&](const Machine& m, Exec& exec, const PagedRows& keys, const PagedRows& values, View kx,
                           View vx, View qx, const int32_t* s, const int32_t* p, View out) {
        const auto append = plan(KvAppend{kv, DType::f32, format}, m);
        append({kx, s, p, keys}, exec);
        append({vx, s, p, values}, exec);
        plan(op, m)({qx, s, p, keys, values, 599, out}, exec);
      };
      test::TestExec e(1);
      run(this_machine(), e.exec, key, value, k.view(), v.view(), q.heads(heads), seq.data(), pos.data(),
          want.heads(heads));
      PagedRows key_at = key, value_at = value;
      key_at.base = value_at.base = pool_at;
      key_at.block_table = value_at.block_table = table_at;
      DeviceMatrix kd(d, k), vd(d, v), qd(d, q), out(d, got);
      Exec exec = d.exec();
      run(d.machine(), exec, key_at, value_at, kd.view(), vd.view(), qd.heads(heads), d.put(seq), d.put(pos),
          out.heads(heads));
      out.fetch();
      std::vector<std::byte> appended(pool.size());
      test::device()->download(appended.data(), pool_at, static_cast<int64_t>(pool.size()));
      EXPECT_TRUE(appended == pool) << "cache rows";
      expect_rows_equal(got, want, "attention_gqa");
    }
}

}  // namespace
}  // namespace gannet
