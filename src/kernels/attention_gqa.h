// Causal softmax attention of grouped query heads over paged keys and values.
//
//   q        f32 or bf16 [T, H, D]   rows may be strided; head h reads kv head h / (H / G)
//   row_seq  i32 [T]                 index into the block tables
//   row_pos  i32 [T]
//   key      PagedRows, width G * D, f32, f16 or bf16: row j is position j of the sequence
//   value    PagedRows likewise
//   max_pos  no row of the step has a larger position (sizes the workspace)
//   out      f32 or bf16 [T, H, D]   out
//   out[t, h] = round( sum_j softmax_j( scale * q[t, h] . key[j, h'] ) value[j, h'] )
//   over j in (row_pos - window, row_pos] when window > 0, else [0, row_pos]. Keys of this step must have been
//   appended.
//
// Sum    q . k in 16 lanes as in linear.h, then times scale. Keys are cut at absolute positions 0, 256, 512, ...;
//        within a cut: maximum m, p_j = exp(s_j - m), the sum of p in 16 lanes by (j % 256) % 16, P.V by rising j
//        with one fused multiply-add each. Cuts are merged in rising order: with M = max(m, m'), both sides times
//        exp(own maximum - M). So a row's bits depend on its keys and position alone.
// Error  about (D/16 + 10) * 2^-24 * scale * sum_d |q_d k_d| in a score, and so that times |value| in the result;
// plus
//        (n_keys/256 + 300) * 2^-24 * max |value|, plus half an ulp of out's type.
// Refuses at plan time: H not a multiple of G. A D over 512 or not a multiple of 16 is left to the reference.
// Source Vaswani et al. 2017; Ainslie et al. 2023 (grouped queries); Beltagy et al. 2020 (sliding window).
#pragma once

#include "kernels/kv_view.h"
#include "kernels/variant.h"

namespace gannet {

struct AttentionGqa {
  int32_t heads = 0, kv_heads = 0, head_dim = 0;
  int32_t window = 0;
  float scale = 1;
  RowFormat format = RowFormat::f16;
  DType q = DType::f32, out = DType::f32;
};

struct AttentionGqaArgs {
  View q;
  const int32_t* row_seq = nullptr;
  const int32_t* row_pos = nullptr;
  PagedRows key, value;
  int32_t max_pos = 0;
  View out;
};

// Arena bytes one call needs at most.
int64_t attention_gqa_workspace_bytes(const AttentionGqa& op, int32_t rows, int32_t max_pos, int32_t n_threads);

// Aborts unless the arguments have the shapes and types of `op`. Every variant begins with it.
void check_attention_gqa(const AttentionGqa& op, const AttentionGqaArgs& args);

using AttentionGqaVariant = Variant<AttentionGqa, AttentionGqaArgs>;
std::span<const AttentionGqaVariant> attention_gqa_cpu();
std::span<const AttentionGqaVariant> attention_gqa_cuda();
std::span<const AttentionGqaVariant> attention_gqa_ref();
Planned<AttentionGqa, AttentionGqaArgs> plan(const AttentionGqa& op, const Machine& machine);

}  // namespace gannet
