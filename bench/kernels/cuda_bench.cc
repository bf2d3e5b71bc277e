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

constexpr int32_t kHeads = 64, kRow = 512, kTop = 512, kContext = 4096, kPage = 64;

std::byte* random_bytes(Bench& b, Arena& arena, int64_t n) {  // read as e4m3 scales they stay numbers
  test::Random random(9);
  std::vector<std::byte> host(static_cast<size_t>(n));
  for (std::byte& v : host) v = static_cast<std::byte>(random.bits() & 0x37);
  std::byte* at = arena.allocate(n);
  b.device.upload(at, host.data(), n);
  return at;
}
int32_t* upload_ints(Bench& b, Arena& arena, const std::vector<int32_t>& host) {
  auto* at = arena.array<int32_t>(static_cast<int64_t>(host.size()));
  b.device.upload(at, host.data(), static_cast<int64_t>(host.size()) * 4);
  return at;
}

// One token a sequence at the end of kContext positions, each with pages and a ring of its own.
SparseAttentionArgs attention_args(Bench& b, Arena& arena, int32_t tokens) {
  constexpr int32_t kBlocks = kContext / kPage, kRing = 128 * 544;
  const int64_t T = tokens;
  test::Random random(9);
  std::vector<int32_t> seq, pos, table, chosen;
  for (int32_t t = 0; t < tokens; ++t) {
    seq.push_back(t);
    pos.push_back(kContext - 1);
    for (int32_t i = 0; i < kBlocks; ++i) table.push_back(t * kBlocks + i);
    for (int32_t i = 0; i < kTop; ++i) chosen.push_back(i * (kContext / kTop) + random.below(kContext / kTop));
  }
  const RowFormat window = RowFormat::fp8_ue8m0, compressed = RowFormat::fp4_e4m3;
  SparseAttentionArgs args;
  args.q = random_rows(b, arena, tokens, kHeads * kRow).reshape({T, kHeads, kRow});
  args.out = arena.tensor(DType::bf16, {T, kHeads, kRow});
  args.row_seq = args.recent.seq_first_row = upload_ints(b, arena, seq);
  args.row_pos = args.recent.seq_first_pos = upload_ints(b, arena, pos);
  args.recent.step = {
      random_bytes(b, arena, T * 512), random_bytes(b, arena, T * 16), nullptr, tokens, kRow, window};
  args.recent.ring = {
      random_bytes(b, arena, T * kRing), args.row_seq, kRing, 0, 512, 512 + 128 * 512, 128, kRow, window};
  args.rows = {random_bytes(b, arena, T * kContext * 288),
               upload_ints(b, arena, table),
               kBlocks,
               kPage,
               kPage * 288,
               0,
               kPage * 256,
               kRow,
               compressed};
  args.selected = upload_ints(b, arena, chosen);
  args.n_selected = upload_ints(b, arena, std::vector<int32_t>(static_cast<size_t>(tokens), kTop));
  std::byte* sink = arena.allocate(4 * kHeads);
  b.device.fill(sink, 0, 4 * kHeads);
  args.sink = reinterpret_cast<float*>(sink);
  return args;
}

void bench_attention(Bench& b, Arena& arena) {
  const std::string title = "attention 64x512, 128 + 512 keys";
  if (!b.wanted(title)) return;
  ThreadPool pool(1, false);
  Exec exec{pool, arena, b.device.stream()};
  const SparseAttention op{kHeads, kRow, 128, kTop, 0.044f, true, DType::bf16, DType::bf16};
  const auto attend = plan(op, b.machine());
  for (const int32_t tokens : {1, 8, 64, 256}) {
    const Arena::Scope scope(arena);
    const SparseAttentionArgs args = attention_args(b, arena, tokens);
    const double us = b.call_us(20, [&] {
      for (int i = 0; i < 20; ++i) attend(args, exec);
    });
    b.row(title + " T=" + std::to_string(tokens), us, tokens * (128 * 528.0 + kTop * 288.0 + 2 * 65536),
          tokens * 4.0 * kHeads * kRow * 640);
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
