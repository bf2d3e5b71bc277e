// Attention over the sliding window and selected compressed rows, in one softmax with a sink per head. One row is
// key and value of all heads.
//
//   q         f32 or bf16 [T, H, D]
//   recent    window rows, width D: those of positions max(0, p - window + 1) .. p are read
//   rows      compressed rows, width D; selected i32 [T, topk] rising, n_selected i32 [T]; nullptr: window only
//   sink      f32 [H]   a raw logit: not scaled
//   out       f32 or bf16 [T, H, D]
//   s_j = (q[t,h] . row_j) * scale;  m = max_j s_j;  P_j = exp(s_j - m)
//   out = round( sum_j P'_j row_j / (sum_j P_j + exp(sink[h] - m)) ),  P' = P, or P rounded to bf16 with `round_p`
//
// A token that is both in the window and in a selected row counts twice; that is the model.
//
// Sum      keys in rising position, then in rising compressed row; q . row in 16 fp32 lanes as in linear.h; P.V by
// that
//          order of keys, one fused multiply-add each; the denominator in 16 lanes (the j-th key in lane j % 16),
//          then the tree of linear.h, the sink last. So a row's bits depend on its keys alone. ref: double.
// Error    about (D/16 + 8) 2^-24 scale sum |q_c k_c| in a score and so that times |row| in out, plus 2 n_keys
// 2^-24
//          max |row|, plus half an ulp of out's type; with round_p a P may flip to the neighbouring bf16.
// Refuses  at plan time: window < 1. Variants other than ref take widths that are multiples of 32.
// Source   DeepSeek-V4.1 (CSA2), DeepSeek-V3.2 for the sink.
#pragma once

#include "kernels/variant.h"
#include "kernels/window.h"

namespace gannet {

struct SparseAttention {
  int32_t heads = 0, width = 0;  // H, D
  int32_t window = 0, topk = 0;  // topk 0: window only
  float scale = 1;
  bool round_p = true;
  DType q = DType::bf16, out = DType::bf16;
};

struct SparseAttentionArgs {
  View q;
  const int32_t* row_seq = nullptr;
  const int32_t* row_pos = nullptr;
  RecentRows recent;
  PagedRows rows;
  const int32_t* selected = nullptr;
  const int32_t* n_selected = nullptr;
  const float* sink = nullptr;
  View out;
};

using SparseAttentionVariant = Variant<SparseAttention, SparseAttentionArgs>;
std::span<const SparseAttentionVariant> sparse_attention_cpu();
std::span<const SparseAttentionVariant> sparse_attention_cuda();  // sums of its own: kernels/cuda/sparse_attention.cu
std::span<const SparseAttentionVariant> sparse_attention_ref();
Planned<SparseAttention, SparseAttentionArgs> plan(const SparseAttention& op, const Machine& machine);

// Workspace bytes of any variant for a pool of n_threads.
int64_t sparse_attention_workspace(const SparseAttention& op, int n_threads);

}  // namespace gannet
