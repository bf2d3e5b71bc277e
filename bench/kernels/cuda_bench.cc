// Times of device kernels beside the bytes or operations that bound them, on one device.
//   cuda_bench [TEXT]    only rows whose name holds TEXT
// Each time is the median of 15 graph replays; a replay runs the op over enough copies of its weight that nothing
// of one call is left in the L2 for the next. The bound is bytes of weights and rows over the read rate measured
// first.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/linear.h"
#include "kernels/moe_experts.h"
#include "kernels/sparse_attention.h"
#include "runtime/device.h"
#include "support/kernels.h"

namespace gannet::bench {
namespace {

struct Bench {
  Device& device;
  std::string only;
  double read_gbps = 0;

  Machine machine() const {
    Machine m = this_machine();
    m.device = &device;
    return m;
  }
  bool wanted(const std::string& name) const { return name.find(only) != std::string::npos; }

  // Median time of one of the n calls that `work` launches.
  double call_us(int n, const std::function<void()>& work) {
    work();
    device.wait();
    const auto graph = device.capture(work);
    for (int i = 0; i < 3; ++i) graph->replay();
    std::vector<double> times;
    for (int i = 0; i < 15; ++i) times.push_back(device.time_us([&] { graph->replay(); }));
    std::nth_element(times.begin(), times.begin() + 7, times.end());
    return times[7] / n;
  }
  void row(const std::string& name, double us, double bytes, double flops) const {
    const double floor = bytes / read_gbps * 1e-3;
    std::printf("%-40s %9.2f us  floor %8.2f  x%5.2f  %7.0f GB/s %7.1f TFLOP/s\n", name.c_str(), us, floor,
                us / floor, bytes / us * 1e-3, flops / us * 1e-6);
    std::fflush(stdout);
  }
};

// Weights of random bytes, as many copies as make 512 MiB: ten times the L2.
struct Copies {
  std::vector<WeightView> weights;
  Copies(Bench& b, Arena& arena, WeightFormat format, int32_t out, int32_t in, int64_t n = 0) {
    const WeightFormatInfo& info = weight_format_info(format);
    const int64_t row = int64_t{in} / info.block_elements * info.block_bytes;
    const int64_t scale_row = in / 32, scale_rows = format == WeightFormat::fp8_32x32 ? out / 32 : out;
    if (n == 0) n = std::clamp<int64_t>((int64_t{512} << 20) / (row * out), 2, 64);
    std::vector<std::byte> codes(static_cast<size_t>(row * out)),
        scales(static_cast<size_t>(scale_row * scale_rows));
    test::Random random(7);
    for (size_t i = 0; i < codes.size(); i += 4) {
      const uint32_t bits = random.bits() & (info.block_elements == 1 ? 0x3FFF3FFFu : 0x77777777u);
      std::memcpy(codes.data() + i, &bits, 4);
    }
    for (std::byte& s : scales) s = static_cast<std::byte>(118 + random.below(4));
    for (int64_t i = 0; i < n; ++i) {
      WeightView w{format, out,      in, arena.allocate(row * out), arena.allocate(scale_row * scale_rows),
                   row,    scale_row};
      b.device.upload(const_cast<std::byte*>(w.codes), codes.data(), row * out);
      b.device.upload(const_cast<std::byte*>(w.scales), scales.data(), scale_row * scale_rows);
      weights.push_back(w);
    }
  }
};

View random_rows(Bench& b, Arena& arena, int32_t rows, int32_t width) {
  std::vector<bf16> x(static_cast<size_t>(rows) * static_cast<size_t>(width));
  test::Random random(3);
  for (bf16& v : x) v = to_bf16(random.unit());
  const View view = arena.tensor(DType::bf16, {rows, width});
  b.device.upload(view.data, x.data(), view.bytes());
  return view;
}

void bench_linear(Bench& b, Arena& arena, const char* what, WeightFormat format, int32_t out, int32_t in,
                  int32_t groups, std::initializer_list<int32_t> row_counts) {
  const std::string title = "linear " + std::string(what);
  if (!b.wanted(title)) return;
  const Arena::Scope scope(arena);
  Copies copies(b, arena, format, out * groups, in);
  ThreadPool pool(1, false);
  Exec exec{pool, arena, b.device.stream()};
  const auto linear = plan(Linear{format, out, in, groups, DType::bf16, DType::bf16}, b.machine());
  for (const int32_t rows : row_counts) {
    const Arena::Scope rows_scope(arena);
    const View x = random_rows(b, arena, rows, in * groups),
               y = arena.tensor(DType::bf16, {rows, int64_t{out} * groups});
    const double us = b.call_us(static_cast<int>(copies.weights.size()), [&] {
      for (const WeightView& w : copies.weights) linear({x, w, nullptr, y}, exec);
    });
    const double scales = format == WeightFormat::bf16
                              ? 0
                              : static_cast<double>(copies.weights[0].scale_row_bytes) * out * groups /
                                    (format == WeightFormat::fp8_32x32 ? 32 : 1);
    b.row(title + " T=" + std::to_string(rows), us,
          static_cast<double>(copies.weights[0].row_bytes) * out * groups + scales +
              static_cast<double>(x.bytes() + y.bytes()),
          2.0 * rows * out * groups * in);
  }
}

void bench_linears(Bench& b, Arena& arena) {
  const std::initializer_list<int32_t> rows{1, 8, 64, 512};
  bench_linear(b, arena, "wq_a|wkv fp8 1792x5120", WeightFormat::fp8_32x32, 1792, 5120, 1, rows);
  bench_linear(b, arena, "wq_b fp8 32768x1280", WeightFormat::fp8_32x32, 32768, 1280, 1, rows);
  bench_linear(b, arena, "wo_a bf16 8x1024x4096", WeightFormat::bf16, 1024, 4096, 8, rows);
  bench_linear(b, arena, "wo_a fp8 8x1024x4096", WeightFormat::fp8_32x32, 1024, 4096, 8, rows);
  bench_linear(b, arena, "wo_b fp8 5120x8192", WeightFormat::fp8_32x32, 5120, 8192, 1, rows);
  bench_linear(b, arena, "w1|w3 fp8 4608x5120", WeightFormat::fp8_32x32, 4608, 5120, 1, rows);
  bench_linear(b, arena, "w2 fp8 5120x2304", WeightFormat::fp8_32x32, 5120, 2304, 1, rows);
  bench_linear(b, arena, "w1|w3 mxfp4 4608x5120", WeightFormat::mxfp4_1x32, 4608, 5120, 1, rows);
  bench_linear(b, arena, "head bf16 129280x5120", WeightFormat::bf16, 129280, 5120, 1, {1, 8, 64});
}

// One layer's experts of an EP8 rank: 48 local experts; every token's 6 fall among them, drawn at random.
void bench_moe(Bench& b, Arena& arena) {
  const std::string title = "moe mxfp4 48x2304x5120";
  if (!b.wanted(title)) return;
  const Arena::Scope scope(arena);
  constexpr int32_t kWidth = 5120, kFfn = 2304, kExperts = 48, kChosen = 6;
  const Copies up(b, arena, WeightFormat::mxfp4_1x32, kFfn, kWidth, 2 * kExperts);
  const Copies down(b, arena, WeightFormat::mxfp4_1x32, kWidth, kFfn, kExperts);
  std::vector<ExpertWeights> experts;
  for (size_t e = 0; e < kExperts; ++e)
    experts.push_back({up.weights[2 * e], up.weights[2 * e + 1], down.weights[e]});
  ThreadPool pool(1, false);
  Exec exec{pool, arena, b.device.stream()};
  const auto moe = plan(MoeExperts{kWidth, kFfn, 10, false, WeightFormat::mxfp4_1x32, DType::bf16}, b.machine());
  for (const int32_t tokens : {1, 8, 64}) {
    constexpr int kDraws = 8;
    const Arena::Scope rows_scope(arena);
    const int32_t rows = tokens * kChosen;
    const View x = random_rows(b, arena, rows, kWidth), y = arena.tensor(DType::bf16, {rows, kWidth});
    auto* offsets = arena.array<int32_t>(kDraws * 64);
    test::Random random(static_cast<uint64_t>(tokens));
    double hit = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<int32_t> count(kExperts), offset{0};
      for (int32_t t = 0; t < tokens; ++t) {
        std::vector<int32_t> ids(kExperts);
        for (int32_t e = 0; e < kExperts; ++e) ids[static_cast<size_t>(e)] = e;
        for (int32_t k = 0; k < kChosen; ++k) {
          std::swap(ids[static_cast<size_t>(k)], ids[static_cast<size_t>(k + random.below(kExperts - k))]);
          ++count[static_cast<size_t>(ids[static_cast<size_t>(k)])];
        }
      }
      for (const int32_t n : count) {
        offset.push_back(offset.back() + n);
        hit += n > 0 ? 1.0 / kDraws : 0;
      }
      b.device.upload(offsets + draw * 64, offset.data(), static_cast<int64_t>(offset.size()) * 4);
    }
    const double us = b.call_us(kDraws, [&] {
      for (int draw = 0; draw < kDraws; ++draw) moe({x, offsets + draw * 64, nullptr, experts, y}, exec);
    });
    const double expert_bytes = 3.0 * kWidth * kFfn * (0.5 + 1.0 / 32);
    b.row(title + " T=" + std::to_string(tokens), us, hit * expert_bytes, 6.0 * rows * kWidth * kFfn);
  }
}

void bench_attention(Bench& b, Arena& arena) {
  const std::string title = "attention 64x512, 128 + 512 keys";
  if (!b.wanted(title)) return;
  constexpr int32_t kWidth = 512, kHeads = 64, kTop = 512, kContext = 4096, kPage = 64;
  ThreadPool pool(1, false);
  Exec exec{pool, arena, b.device.stream()};
  const auto attend =
      plan(SparseAttention{kHeads, kWidth, 128, kTop, 0.044f, true, DType::bf16, DType::bf16}, b.machine());
  for (const int32_t tokens : {1, 8, 64, 256}) {  // one token a sequence, each with pages and a ring of its own
    const Arena::Scope scope(arena);
    const View q = random_rows(b, arena, tokens, kHeads * kWidth),
               out = arena.tensor(DType::bf16, {tokens, kHeads * kWidth});
    test::Random random(9);
    const int32_t blocks = kContext / kPage;
    const auto bytes = [&](int64_t n) {  // random codes; as e4m3 scales they stay numbers
      std::vector<std::byte> host(static_cast<size_t>(n));
      for (std::byte& v : host) v = static_cast<std::byte>(random.bits() & 0x37);
      std::byte* at = arena.allocate(n);
      b.device.upload(at, host.data(), n);
      return at;
    };
    const auto ints = [&](const std::vector<int32_t>& host) {
      auto* at = arena.array<int32_t>(static_cast<int64_t>(host.size()));
      b.device.upload(at, host.data(), static_cast<int64_t>(host.size()) * 4);
      return at;
    };
    std::vector<int32_t> seq, pos, table, chosen, count;
    for (int32_t t = 0; t < tokens; ++t) {
      seq.push_back(t), pos.push_back(kContext - 1), count.push_back(kTop);
      for (int32_t i = 0; i < blocks; ++i) table.push_back(t * blocks + i);
      for (int32_t i = 0; i < kTop; ++i) chosen.push_back(i * (kContext / kTop) + random.below(kContext / kTop));
    }
    RecentRows recent;
    recent.step = {bytes(int64_t{tokens} * 512), bytes(int64_t{tokens} * 16), nullptr, tokens, kWidth,
                   RowFormat::fp8_ue8m0};
    recent.ring = {bytes(int64_t{tokens} * 128 * 544),
                   ints(seq),
                   128 * 544,
                   0,
                   512,
                   512 + 128 * 512,
                   128,
                   kWidth,
                   RowFormat::fp8_ue8m0};
    recent.seq_first_row = ints(seq);
    recent.seq_first_pos = ints(pos);
    const PagedRows rows{bytes(int64_t{tokens} * kContext * 288),
                         ints(table),
                         blocks,
                         kPage,
                         kPage * 288,
                         0,
                         kPage * 256,
                         kWidth,
                         RowFormat::fp4_e4m3};
    auto* sink = reinterpret_cast<float*>(arena.allocate(256));
    b.device.fill(sink, 0, 256);
    const SparseAttentionArgs args{View(q.data, DType::bf16, {tokens, kHeads, kWidth}),
                                   recent.seq_first_row,
                                   recent.seq_first_pos,
                                   recent,
                                   rows,
                                   ints(chosen),
                                   ints(count),
                                   sink,
                                   View(out.data, DType::bf16, {tokens, kHeads, kWidth})};
    const double us = b.call_us(20, [&] {
      for (int i = 0; i < 20; ++i) attend(args, exec);
    });
    b.row(title + " T=" + std::to_string(tokens), us, tokens * (128 * 528.0 + kTop * 288.0 + 2 * 65536),
          tokens * 4.0 * kHeads * kWidth * 640);
  }
}

int run(const char* only) {
  auto opened = Device::open(0, int64_t{24} << 30);
  if (!opened) {
    std::printf("%s\n", opened.error().message.c_str());
    return 1;
  }
  Bench b{**opened, only, 0};
  Arena arena(b.device.allocate(int64_t{16} << 30), int64_t{16} << 30);
  std::byte *from = b.device.allocate(int64_t{3} << 30), *to = b.device.allocate(int64_t{3} << 30);
  b.device.fill(from, 0x5A, int64_t{3} << 30);
  const double copy_us = b.call_us(1, [&] { b.device.copy(to, from, int64_t{3} << 30); });
  b.read_gbps = 2 * static_cast<double>(int64_t{3} << 30) / copy_us * 1e-3;
  std::printf("%s, %d multiprocessors, copy %.0f GB/s (read and written)\n", b.device.info().name.c_str(),
              b.device.info().multiprocessors, b.read_gbps);
  bench_linears(b, arena);
  bench_moe(b, arena);
  bench_attention(b, arena);
  return 0;
}

}  // namespace
}  // namespace gannet::bench

int main(int argc, char** argv) { return gannet::bench::run(argc > 1 ? argv[1] : ""); }
