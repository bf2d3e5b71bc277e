#include <array>
#include <cmath>

#include "kernels/hyper_connection.h"
#include "kernels/row_io.h"

namespace gannet {
namespace {

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

double at(const View& x, int64_t row, int64_t i) {
  float value;
  read_row(x, row, i, 1, &value);
  return value;
}

void mix(const HcMix& op, const HcMixArgs& args, Exec&) {
  const int32_t S = op.streams;
  const int64_t n = int64_t{S} * op.width;
  for (int64_t t = 0; t < args.h.dim(0); ++t) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += at(args.h, t, i) * at(args.h, t, i);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + double{op.rms_eps});
    const auto m = [&](int32_t i, int part) {
      return at(args.product, t, i) * rstd * double{args.scale[part]} + double{args.base[i]};
    };
    std::array<double, 64> logits{}, comb{};
    for (int32_t s = 0; s < S; ++s) {
      const auto pre = static_cast<float>(sigmoid(m(s, 0)) + double{op.hc_eps});
      const auto post = static_cast<float>(2 * sigmoid(m(S + s, 1)));
      write_row(&pre, args.pre, t, s, 1);
      write_row(&post, args.post, t, s, 1);
    }
    for (int32_t i = 0; i < S * S; ++i) logits[static_cast<size_t>(i)] = m(2 * S + i, 2);
    sinkhorn<double>(logits.data(), S, op.iters, double{op.hc_eps}, comb.data());
    for (int32_t i = 0; i < S * S; ++i) {
      const auto c = static_cast<float>(comb[static_cast<size_t>(i)]);
      write_row(&c, args.comb, t, i, 1);
    }
  }
}

void collapse(const HcCollapse& op, const HcCollapseArgs& args, Exec&) {
  for (int64_t t = 0; t < args.h.dim(0); ++t)
    for (int64_t c = 0; c < op.width; ++c) {
      double sum = 0;
      for (int32_t s = 0; s < op.streams; ++s) sum += at(args.pre, t, s) * at(args.h, t, s * int64_t{op.width} + c);
      const auto out = static_cast<float>(sum);
      write_row(&out, args.out, t, c, 1);
    }
}

void expand(const HcExpand& op, const HcExpandArgs& args, Exec&) {
  const int32_t S = op.streams;
  for (int64_t t = 0; t < args.h.dim(0); ++t)
    for (int64_t c = 0; c < op.width; ++c) {
      std::array<float, 8> mixed{};
      for (int32_t k = 0; k < S; ++k) {
        double sum = at(args.post, t, k) * at(args.y, t, c);
        for (int32_t j = 0; j < S; ++j)
          sum += at(args.comb, t, j * S + k) * at(args.h, t, j * int64_t{op.width} + c);
        mixed[static_cast<size_t>(k)] = static_cast<float>(sum);
      }
      for (int32_t k = 0; k < S; ++k)
        write_row(&mixed[static_cast<size_t>(k)], args.h, t, k * int64_t{op.width} + c, 1);
    }
}

void start(const HcStart& op, const HcStartArgs& args, Exec& exec) {
  const auto bytes = static_cast<size_t>(op.width * dtype_bytes(op.h));
  GANNET_CHECK(args.x.dtype == op.h && args.h.dtype == op.h && row_elements(args.x) == op.width, "streams of {}",
               op.width);
  exec.pool.parallel_for(args.x.dim(0), 64, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int32_t s = 0; s < op.streams; ++s) {
        std::memcpy(args.h.row(t).row(s).data, args.x.row(t).data, bytes);
        const float weight = s == 0 ? 1.0f : 0.0f;
        write_row(&weight, args.pre, t, s, 1);
      }
  });
}

void mean(const HcMean& op, const HcMeanArgs& args, Exec&) {
  for (int64_t t = 0; t < args.h.dim(0); ++t) {
    if ((args.row_flags[t] & args.flag) == 0) continue;
    for (int64_t c = 0; c < op.width; ++c) {
      double sum = 0;
      for (int32_t s = 0; s < op.streams; ++s) sum += at(args.h, t, s * int64_t{op.width} + c);
      const auto out = static_cast<float>(sum / op.streams);
      write_row(&out, args.out, args.row_index == nullptr ? t : args.row_index[t], c, 1);
    }
  }
}

template <class Op>
bool always(const Op&, const Machine&) {
  return true;
}

constexpr Variant<HcMix, HcMixArgs> kMix[] = {{"ref", always<HcMix>, mix}};
constexpr Variant<HcCollapse, HcCollapseArgs> kCollapse[] = {{"ref", always<HcCollapse>, collapse}};
constexpr Variant<HcExpand, HcExpandArgs> kExpand[] = {{"ref", always<HcExpand>, expand}};
constexpr Variant<HcStart, HcStartArgs> kStart[] = {{"ref", always<HcStart>, start}};
constexpr Variant<HcMean, HcMeanArgs> kMean[] = {{"ref", always<HcMean>, mean}};

}  // namespace

std::span<const Variant<HcMix, HcMixArgs>> hc_mix_ref() { return kMix; }
std::span<const Variant<HcCollapse, HcCollapseArgs>> hc_collapse_ref() { return kCollapse; }
std::span<const Variant<HcExpand, HcExpandArgs>> hc_expand_ref() { return kExpand; }
std::span<const Variant<HcStart, HcStartArgs>> hc_start_ref() { return kStart; }
std::span<const Variant<HcMean, HcMeanArgs>> hc_mean_ref() { return kMean; }

}  // namespace gannet
