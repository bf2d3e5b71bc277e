// Times of the ops that dominate a step, beside the bound that limits each. Shapes are those of SmolLM2-135M unless
// said otherwise.
//   kernels_bench [--threads N] [--isa avx2|avx512] [--only TEXT] [--clock cpu]   (cpu: only with one thread)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ceilings.h"
#include "kernels/attention_gqa.h"
#include "kernels/gated_activation.h"
#include "kernels/linear.h"
#include "kernels/rms_norm.h"
#include "support/kernels.h"

namespace gannet::bench {
namespace {

struct Options {
  int threads = 0;
  std::string isa, only;
};

struct Report {
  Ceilings ceilings;
  std::string only;

  bool wanted(const std::string& name) const { return only.empty() || name.find(only) != std::string::npos; }
  void row(const std::string& name, double seconds, double bytes, double flops) const {
    const double gbps = bytes / seconds * 1e-9, gflops = flops / seconds * 1e-9;
    std::printf("%-44s %10.2f us %8.2f GB/s %4.0f %%  %8.1f GFLOP/s %4.0f %%\n", name.c_str(), seconds * 1e6, gbps,
                100 * gbps / ceilings.read_cached_gbps, gflops, 100 * gflops / ceilings.fma_gflops);
    std::fflush(stdout);
  }
};

// A matrix alone fits the caches near the core, which a model's does not: copies up to 96 MiB are used in turn.
void bench_linear(const Report& report, Exec& exec, const Machine& machine, WeightFormat format, int32_t out,
                  int32_t in, int32_t rows) {
  const std::string name = "linear " + std::string(weight_format_info(format).name) + " " + std::to_string(out) +
                           "x" + std::to_string(in) + " T=" + std::to_string(rows);
  if (!report.wanted(name)) return;
  std::vector<test::Weight> weights;
  weights.push_back(test::make_weight(format, out, in, 1));
  const int64_t bytes = weights[0].view.bytes();
  while (static_cast<int64_t>(weights.size()) * bytes < (int64_t{96} << 20) && weights.size() < 200) {
    weights.push_back(weights[0]);
    test::Weight& w = weights.back();
    w.view.codes = w.codes.data() + (weights[0].view.codes - weights[0].codes.data());
    if (!w.scales.empty()) w.view.scales = w.scales.data();
  }
  test::Matrix x(rows, in), y(rows, out);
  test::Random random(2);
  x.fill(random);
  const auto linear = plan(Linear{format, out, in}, machine);
  const auto n = static_cast<double>(weights.size());
  const double seconds = fastest_seconds(rows > 16 ? 3 : 9, [&] {
    for (const test::Weight& w : weights) linear({x.view(), w.view, nullptr, y.view()}, exec);
  });
  report.row(name, seconds / n, static_cast<double>(bytes), 2.0 * rows * out * in);
}

void bench_attention(const Report& report, Exec& exec, const Machine& machine, int32_t rows, int32_t context) {
  const std::string name = "attention 9/3x64 f16 T=" + std::to_string(rows) + " n=" + std::to_string(context);
  if (!report.wanted(name)) return;
  const AttentionGqa op{9, 3, 64, 0, 0.125f, RowFormat::f16, DType::f32, DType::f32};
  std::vector<int32_t> table, seq(static_cast<size_t>(rows)), pos;
  for (int32_t b = 0; b <= context / 16; ++b) table.push_back(b);
  for (int32_t t = 0; t < rows; ++t) pos.push_back(context - rows + t);
  const int64_t block_bytes = 2 * 16 * row_code_bytes(RowFormat::f16, 192);
  std::vector<std::byte> pool(table.size() * static_cast<size_t>(block_bytes));
  for (size_t i = 0; i < pool.size(); i += 2)
    test::store(&pool[i], DType::f16, static_cast<float>(i % 97) / 97 - 0.5f);
  PagedRows key{pool.data(), table.data(),  static_cast<int32_t>(table.size()), 16, block_bytes, 0, 0,
                192,         RowFormat::f16};
  PagedRows value = key;
  value.codes_offset = block_bytes / 2;
  test::Matrix q(rows, 9 * 64), out(rows, 9 * 64);
  test::Random random(3);
  q.fill(random);
  const auto attention = plan(op, machine);
  const double seconds = fastest_seconds(rows > 16 ? 5 : 200, [&] {
    attention({q.heads(9), seq.data(), pos.data(), key, value, context - 1, out.heads(9)}, exec);
  });
  double pairs = 0;
  for (const int32_t p : pos) pairs += p + 1;
  report.row(name, seconds, 2.0 * context * row_code_bytes(RowFormat::f16, 192), pairs * 9 * 64 * 4);
}

void bench_rows(const Report& report, Exec& exec, const Machine& machine, int32_t rows) {
  test::Matrix x(rows, 576), y(rows, 576), gate(rows, 1536), up(rows, 1536);
  test::Random random(4);
  x.fill(random);
  gate.fill(random);
  up.fill(random);
  const std::vector<float> weight(576, 1.0f);
  const auto norm = plan(RmsNorm{576}, machine);
  const auto silu = plan(GatedActivation{Activation::silu, 1536}, machine);
  const std::string tail = " T=" + std::to_string(rows);
  if (report.wanted("rms_norm 576" + tail))
    report.row("rms_norm 576" + tail,
               fastest_seconds(50,
                               [&] {
                                 norm({x.view(), weight.data(), y.view()}, exec);
                               }),
               8.0 * rows * 576, 4.0 * rows * 576);
  if (report.wanted("gated silu 1536" + tail))
    report.row("gated silu 1536" + tail,
               fastest_seconds(50,
                               [&] {
                                 silu({gate.view(), up.view(), nullptr, gate.view()}, exec);
                               }),
               12.0 * rows * 1536, 20.0 * rows * 1536);
}

// All products of one SmolLM2-135M token: 30 layers and the tied output.
void bench_model(const Report& report, Exec& exec, const Machine& machine, int32_t rows) {
  const std::string name = "SmolLM2-135M linears T=" + std::to_string(rows);
  if (!report.wanted(name)) return;
  struct Part {
    Planned<Linear, LinearArgs> linear;
    test::Weight weight;
  };
  std::vector<Part> parts;
  const auto take = [&](WeightFormat format, int32_t out, int32_t in) {
    parts.push_back({plan(Linear{format, out, in}, machine), test::make_weight(format, out, in, parts.size())});
  };
  for (int layer = 0; layer < 30; ++layer) {
    for (const int32_t out : {576, 192, 192, 576, 1536, 1536}) take(WeightFormat::q4_1, out, 576);
    take(WeightFormat::q4_1, 576, 1536);
  }
  double bytes = 0, flops = 0;
  for (const Part& p : parts) flops += 2.0 * rows * p.weight.view.out * p.weight.view.in;
  take(WeightFormat::q8_0, 49152, 576);
  flops += 2.0 * 49152 * 576;
  for (const Part& p : parts) bytes += static_cast<double>(p.weight.view.bytes());
  test::Matrix x(rows, 1536), y(rows, 1536), logits(1, 49152);
  test::Random random(5);
  x.fill(random);
  const double seconds = fastest_seconds(rows > 16 ? 5 : 30, [&] {
    for (const Part& p : parts) {
      const bool last = p.weight.view.out == 49152;
      const View in = x.view().columns(0, p.weight.view.in);
      p.linear({last ? in.rows(0, 1) : in, p.weight.view, nullptr,
                last ? logits.view() : y.view().columns(0, p.weight.view.out)},
               exec);
    }
  });
  report.row(name, seconds, bytes, flops);
  std::printf("%-44s %10.1f tokens/s\n", "", rows / seconds);
}

void bench_all(const Report& report, Exec& exec, const Machine& machine) {
  for (const int32_t rows : {1, 2, 4, 8, 16, 128, 512}) bench_model(report, exec, machine, rows);
  for (const WeightFormat format : test::all_formats()) {
    const bool super = weight_format_info(format).block_elements == 256;
    for (const int32_t rows : {1, 128}) bench_linear(report, exec, machine, format, 1536, super ? 512 : 576, rows);
  }
  for (const WeightFormat format : {WeightFormat::q4_1, WeightFormat::q8_0, WeightFormat::bf16})
    for (const int32_t rows : {2, 3, 4, 5, 8, 16, 32}) bench_linear(report, exec, machine, format, 1536, 576, rows);
  bench_linear(report, exec, machine, WeightFormat::q8_0, 49152, 576, 1);
  for (const int32_t rows : {1, 64}) {  // V4.1-Flash: hidden 4096
    bench_linear(report, exec, machine, WeightFormat::fp8_32x32, 2048, 4096, rows);
    bench_linear(report, exec, machine, WeightFormat::mxfp4_1x32, 2048, 4096, rows);
  }
  for (const int32_t context : {16, 128, 512, 2048, 8192}) bench_attention(report, exec, machine, 1, context);
  for (const int32_t context : {128, 512, 2048}) bench_attention(report, exec, machine, 128, context);
  for (const int32_t rows : {1, 128}) bench_rows(report, exec, machine, rows);
}

}  // namespace
}  // namespace gannet::bench

int main(int argc, char** argv) {
  using namespace gannet;
  bench::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0)
      options.threads = std::atoi(argv[i + 1]);
    else if (std::strcmp(argv[i], "--isa") == 0)
      options.isa = argv[i + 1];
    else if (std::strcmp(argv[i], "--only") == 0)
      options.only = argv[i + 1];
    else if (std::strcmp(argv[i], "--clock") == 0)
      bench::use_cpu_clock = std::strcmp(argv[i + 1], "cpu") == 0;
    else
      return std::fprintf(stderr, "kernels_bench: unknown option %s\n", argv[i]), 2;
  }
  const Machine machine = this_machine(options.isa);
  ThreadPool pool(options.threads);
  pool.pin_caller();
  Arena arena(int64_t{1} << 30);
  Exec exec{pool, arena};
  const bench::Report report{bench::measure_ceilings(pool, machine.cpu), options.only};
  std::printf(
      "%s, %d threads%s%s: read 96 MiB %.1f GB/s, 1 GiB %.1f GB/s, fp32 FMA %.0f GFLOP/s; shares are of the first "
      "and last\n",
      machine.cpu.name.c_str(), pool.size(), options.isa.empty() ? "" : ", at most ", options.isa.c_str(),
      report.ceilings.read_cached_gbps, report.ceilings.read_memory_gbps, report.ceilings.fma_gflops);
  bench::bench_all(report, exec, machine);
}
