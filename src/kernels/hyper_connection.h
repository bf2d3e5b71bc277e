// Manifold-constrained hyper-connections (mHC): S residual streams, collapsed to one vector in front of a layer's
// site and expanded again behind it by weights that depend on the streams themselves.
//
//   h     f32 or bf16 [T, S, C]     the streams
//   pre   f32 [T, S]                weights of the collapse
//   post  f32 [T, S]                weights of the site's output in each stream
//   comb  f32 [T, S, S]             stream j's share in the new stream k, nearly doubly stochastic
//
// HcMix       m = product * (mean(h^2) + rms_eps)^-1/2, one statistic over all S * C values
//             pre  = sigmoid(m[0..S) * scale[0] + base[0..S)) + hc_eps
//             post = 2 sigmoid(m[S..2S) * scale[1] + base[S..2S))
//             comb = Sinkhorn of m[2S + S j + k] * scale[2] + base[..]: softmax over k, + hc_eps, a column step,
//             then iters - 1 times a row step and a column step; every step divides by (sum + hc_eps)
// HcCollapse  out[c] = round( sum_s pre[s] h[s][c] )
// HcExpand    h[k][c] = round( post[k] y[c] + sum_j comb[j][k] h[j][c] ), in place
// HcStart     h[s] = x for every s, pre = (1, 0, 0, ...)
// HcMean      out[row_index[t]] = round( mean over s of h[t][s] ): the draft model's taps, for rows that want them
//
// Sum    HcCollapse, HcExpand: fp32 in the order written, product and sum rounded apart. HcMix: the statistic in 16
//        fp32 lanes (lane i takes elements i, i + 16, ...), added in the tree of linear.h; Sinkhorn in fp32. ref:
//        double.
// Error  HcMix: pre, post, comb within 2^-18 of the exact value for |m| <= 16.
// Refuses at plan time: S > 8.
// Source DeepSeek-V4.1, single-pass mHC: a site's own `pre` is used one site later.
#pragma once

#include "kernels/variant.h"

namespace gannet {

struct HcMix {
  int32_t streams = 4, width = 0;  // S, C
  int32_t iters = 20;
  float hc_eps = 1e-6f, rms_eps = 1e-20f;
  DType h = DType::bf16;
};
struct HcMixArgs {
  View h;
  View product;                  // f32 [T, (2 + S) S] = h flattened times fn transposed
  const float* scale = nullptr;  // [3]
  const float* base = nullptr;   // [(2 + S) S]
  View pre, post, comb;          // out
};

struct HcCollapse {
  int32_t streams = 4, width = 0;
  DType h = DType::bf16;  // of out too
};
struct HcCollapseArgs {
  View h, pre;
  View out;  // [T, C]
};

struct HcExpand {
  int32_t streams = 4, width = 0;
  DType h = DType::bf16;  // of y too
};
struct HcExpandArgs {
  View y;  // [T, C]
  View post, comb;
  View h;  // in and out
};

struct HcStart {
  int32_t streams = 4, width = 0;
  DType h = DType::bf16;
};
struct HcStartArgs {
  View x;  // [T, C], the type of h
  View h, pre;
};

struct HcMean {
  int32_t streams = 4, width = 0;
  DType h = DType::bf16;
};
struct HcMeanArgs {
  View h;
  const int32_t* row_index = nullptr;  // [T] row of `out`; nullptr: the same
  const uint8_t* row_flags = nullptr;  // [T] rows without `flag` are left out
  uint8_t flag = 0;
  View out;  // [*, C]
};

std::span<const Variant<HcMix, HcMixArgs>> hc_mix_cpu();
std::span<const Variant<HcMix, HcMixArgs>> hc_mix_ref();
std::span<const Variant<HcCollapse, HcCollapseArgs>> hc_collapse_cpu();
std::span<const Variant<HcCollapse, HcCollapseArgs>> hc_collapse_ref();
std::span<const Variant<HcExpand, HcExpandArgs>> hc_expand_cpu();
std::span<const Variant<HcExpand, HcExpandArgs>> hc_expand_ref();
std::span<const Variant<HcStart, HcStartArgs>> hc_start_ref();
std::span<const Variant<HcMean, HcMeanArgs>> hc_mean_ref();

Planned<HcMix, HcMixArgs> plan(const HcMix& op, const Machine& machine);
Planned<HcCollapse, HcCollapseArgs> plan(const HcCollapse& op, const Machine& machine);
Planned<HcExpand, HcExpandArgs> plan(const HcExpand& op, const Machine& machine);
Planned<HcStart, HcStartArgs> plan(const HcStart& op, const Machine& machine);
Planned<HcMean, HcMeanArgs> plan(const HcMean& op, const Machine& machine);

// The Sinkhorn step alone: logits [S, S] to comb [S, S], in T's precision.
template <class T>
void sinkhorn(const T* logits, int32_t streams, int32_t iters, T eps, T* comb);

}  // namespace gannet
