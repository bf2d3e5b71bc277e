// Plain loops over channels that the compiler vectorises; the order of every sum is the one written, so the bits
// are those of any instruction set.
#include <array>
#include <cmath>

#include "kernels/hyper_connection.h"
#include "kernels/row_io.h"

namespace gannet {
namespace {

constexpr int64_t kPiece = 256;  // channels at a time

float sigmoid(float z) { return 1.0f / (1.0f + std::exp(-z)); }

float mean_square(const View& h, int64_t t, int64_t n) {
  std::array<float, 16> lanes{};
  std::array<float, kPiece> x;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t piece = std::min(kPiece, n - begin);
    read_row(h, t, begin, piece, x.data());
    for (int64_t i = piece; i % 16 != 0; ++i) x[static_cast<size_t>(i)] = 0;
    for (int64_t i = 0; i < piece; i += 16)
      for (size_t j = 0; j < 16; ++j) {
        const float v = x[static_cast<size_t>(i) + j];
        lanes[j] += v * v;
      }
  }
  for (size_t width = 8; width > 0; width /= 2)
    for (size_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  return lanes[0] / static_cast<float>(n);
}

void mix(const HcMix& op, const HcMixArgs& args, Exec& exec) {
  const int32_t S = op.streams;
  exec.pool.parallel_for(args.h.dim(0), 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float rstd = 1.0f / std::sqrt(mean_square(args.h, t, int64_t{S} * op.width) + op.rms_eps);
      std::array<float, 80> m;
      std::array<float, 64> comb;
      read_row(args.product, t, 0, int64_t{2 + S} * S, m.data());
      for (int32_t i = 0; i < (2 + S) * S; ++i) {
        const int part = i < S ? 0 : i < 2 * S ? 1 : 2;
        m[static_cast<size_t>(i)] = m[static_cast<size_t>(i)] * rstd * args.scale[part] + args.base[i];
      }
      std::array<float, 8> pre, post;
      for (size_t s = 0; s < static_cast<size_t>(S); ++s) {
        pre[s] = sigmoid(m[s]) + op.hc_eps;
        post[s] = 2.0f * sigmoid(m[static_cast<size_t>(S) + s]);
      }
      sinkhorn<float>(m.data() + 2 * S, S, op.iters, op.hc_eps, comb.data());
      write_row(pre.data(), args.pre, t, 0, S);
      write_row(post.data(), args.post, t, 0, S);
      write_row(comb.data(), args.comb, t, 0, int64_t{S} * S);
    }
  });
}

void collapse(const HcCollapse& op, const HcCollapseArgs& args, Exec& exec) {
  exec.pool.parallel_for(args.h.dim(0), 4, [&](int64_t begin, int64_t end) {
    std::array<float, kPiece> h, sum;
    std::array<float, 8> pre;
    for (int64_t t = begin; t < end; ++t) {
      read_row(args.pre, t, 0, op.streams, pre.data());
      for (int64_t c = 0; c < op.width; c += kPiece) {
        const int64_t n = std::min<int64_t>(kPiece, op.width - c);
        for (int32_t s = 0; s < op.streams; ++s) {
          read_row(args.h, t, s * int64_t{op.width} + c, n, h.data());
          const float a = pre[static_cast<size_t>(s)];
          for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(i);
            sum[at] = s == 0 ? a * h[at] : sum[at] + a * h[at];
          }
        }
        write_row(sum.data(), args.out, t, c, n);
      }
    }
  });
}

void expand(const HcExpand& op, const HcExpandArgs& args, Exec& exec) {
  const int32_t S = op.streams;
  exec.pool.parallel_for(args.h.dim(0), 4, [&](int64_t begin, int64_t end) {
    std::array<float, 8 * kPiece> h;
    std::array<float, kPiece> y, sum;
    std::array<float, 8> post;
    std::array<float, 64> comb;
    for (int64_t t = begin; t < end; ++t) {
      read_row(args.post, t, 0, S, post.data());
      read_row(args.comb, t, 0, int64_t{S} * S, comb.data());
      for (int64_t c = 0; c < op.width; c += kPiece) {
        const int64_t n = std::min<int64_t>(kPiece, op.width - c);
        read_row(args.y, t, c, n, y.data());
        for (int32_t j = 0; j < S; ++j) read_row(args.h, t, j * int64_t{op.width} + c, n, h.data() + j * kPiece);
        for (int32_t k = 0; k < S; ++k) {
          for (int64_t i = 0; i < n; ++i)
            sum[static_cast<size_t>(i)] = post[static_cast<size_t>(k)] * y[static_cast<size_t>(i)];
          for (int32_t j = 0; j < S; ++j) {
            const float share = comb[static_cast<size_t>(j * S + k)];
            const float* from = h.data() + j * kPiece;
            for (int64_t i = 0; i < n; ++i) sum[static_cast<size_t>(i)] += share * from[i];
          }
          write_row(sum.data(), args.h, t, k * int64_t{op.width} + c, n);
        }
      }
    }
  });
}

template <class Op>
bool always(const Op&, const Machine&) {
  return true;
}

constexpr Variant<HcMix, HcMixArgs> kMix[] = {{"cpu", always<HcMix>, mix}};
constexpr Variant<HcCollapse, HcCollapseArgs> kCollapse[] = {{"cpu", always<HcCollapse>, collapse}};
constexpr Variant<HcExpand, HcExpandArgs> kExpand[] = {{"cpu", always<HcExpand>, expand}};

}  // namespace

std::span<const Variant<HcMix, HcMixArgs>> hc_mix_cpu() { return kMix; }
std::span<const Variant<HcCollapse, HcCollapseArgs>> hc_collapse_cpu() { return kCollapse; }
std::span<const Variant<HcExpand, HcExpandArgs>> hc_expand_cpu() { return kExpand; }

}  // namespace gannet
