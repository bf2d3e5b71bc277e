// Experts on a device are two launches; the same rows through `linear` and `gated_activation`, which have tests of
// their own, must give the same bits.
#include "kernels/moe_experts.h"

#include "cuda/device_case.h"

namespace gannet {
namespace {

using test::DeviceCase;
using test::DeviceMatrix;
using test::Matrix;

struct Experts {
  std::vector<test::Weight> host;
  std::vector<ExpertWeights> on_device;
  Experts(DeviceCase& d, WeightFormat format, int32_t n, int32_t width, int32_t ffn) {
    for (int32_t e = 0; e < n; ++e) {
      ExpertWeights w;
      for (const auto& [to, out, in] : {std::tuple{&w.w1, ffn, width}, {&w.w3, ffn, width}, {&w.w2, width, ffn}}) {
        host.push_back(test::make_weight(format, out, in, host.size() + 1));
        *to = d.put(host.back().view);
      }
      on_device.push_back(w);
    }
  }
};

void expect_composition(WeightFormat format, int32_t width, int32_t ffn, const std::vector<int32_t>& offset,
                        float limit, bool weighted) {
  DeviceCase d;
  Exec exec = d.exec();
  const Experts experts(d, format, static_cast<int32_t>(offset.size()) - 1, width, ffn);
  const int32_t n = offset.back() + 2;  // two rows of nobody
  Matrix x(n, width, DType::bf16, 8, 0), want(n, width, DType::bf16, 3, 1), got(n, width, DType::bf16, 3, 1);
  test::Random random(11);
  x.fill(random, 0.5f);
  std::vector<float> weight;
  for (int32_t i = 0; i < n; ++i) weight.push_back(random.unit() + 1.5f);
  DeviceMatrix xd(d, x), wd(d, want), gd(d, got);
  const float* weight_at = weighted ? d.put(weight) : nullptr;

  const MoeExperts op{width, ffn, limit, false, format, DType::bf16};
  plan(op, d.machine())({xd.view(), d.put(offset), weight_at, experts.on_device, gd.view()}, exec);
  const auto up = plan(Linear{format, ffn, width, 1, DType::bf16, DType::bf16}, d.machine());
  const auto down = plan(Linear{format, width, ffn, 1, DType::bf16, DType::bf16}, d.machine());
  const auto act = plan(GatedActivation{Activation::silu, ffn, limit, DType::bf16, DType::bf16}, d.machine());
  const View gate(d.allocate(int64_t{n} * ffn * 2), DType::bf16, {n, ffn});
  const View value(d.allocate(int64_t{n} * ffn * 2), DType::bf16, {n, ffn});
  for (size_t e = 0; e + 1 < offset.size(); ++e) {
    const int32_t first = offset[e], rows = offset[e + 1] - first;
    const ExpertWeights& w = experts.on_device[e];
    const View g = gate.rows(0, rows), u = value.rows(0, rows);
    up({xd.view().rows(first, rows), w.w1, nullptr, g}, exec);
    up({xd.view().rows(first, rows), w.w3, nullptr, u}, exec);
    act({g, u, weighted ? weight_at + first : nullptr, g}, exec);
    down({g, w.w2, nullptr, wd.view().rows(first, rows)}, exec);
  }
  gd.fetch();
  wd.fetch();
  ASSERT_TRUE(got.canaries_intact());
  for (int32_t t = 0; t < n; ++t) ASSERT_TRUE(got.row_equal(t, want, t)) << "row " << t << " of " << n;
}

TEST(CudaMoeExperts, EqualsLinearsAndActivation) {
  GANNET_NEEDS_DEVICE();
  for (const WeightFormat format : {WeightFormat::mxfp4_1x32, WeightFormat::fp8_32x32}) {
    expect_composition(format, 256, 128, {0, 1}, 0, false);
    expect_composition(format, 640, 384, {0, 0, 3, 4, 4, 9}, 2, true);
    expect_composition(format, 256, 128, {0, 0, 1, 18, 18, 52, 130}, 2, true);
    expect_composition(format, 5120, 2304, {0, 0, 1, 1, 2}, 10, true);
  }
}

}  // namespace
}  // namespace gannet
