#include "model/llama/attention.h"

#include <fmt/format.h>

namespace gannet::llama {

Result<Attention> Attention::load(Loader& loader, int32_t layer) {
  const Config& c = loader.config;
  const std::string name = fmt::format("model.layers.{}.self_attn.", layer);
  const int64_t q_width = int64_t{c.n_heads} * c.head_dim, kv_width = int64_t{c.n_kv_heads} * c.head_dim;
  const bool local = !c.is_local.empty() && c.is_local[static_cast<size_t>(layer)];
  const llama::Rope& rope = local ? c.rope_local : c.rope;

  Attention a;
  a.heads_ = c.n_heads;
  a.kv_heads_ = c.n_kv_heads;
  a.head_dim_ = c.head_dim;
  a.local_ = local;
  a.plane_k_ = 2 * layer;
  a.plane_v_ = 2 * layer + 1;
  GANNET_ASSIGN(a.q_, Projection::load(loader, name + "q_proj", q_width, c.hidden, c.qkv_bias));
  GANNET_ASSIGN(a.k_, Projection::load(loader, name + "k_proj", kv_width, c.hidden, c.qkv_bias));
  GANNET_ASSIGN(a.v_, Projection::load(loader, name + "v_proj", kv_width, c.hidden, c.qkv_bias));
  GANNET_ASSIGN(a.o_, Projection::load(loader, name + "o_proj", c.hidden, q_width, c.o_bias));
  a.qkv_ = JointProjection::of(loader, {&a.q_, &a.k_, &a.v_});
  if (c.qk_norm) {
    GANNET_ASSIGN(a.norm_q_, Norm::load(loader, name + "q_norm", c.head_dim));
    GANNET_ASSIGN(a.norm_k_, Norm::load(loader, name + "k_norm", c.head_dim));
  }

  const bool interleaved = c.rope_pairs == RopePairs::interleaved;
  a.rope_q_ = plan(gannet::Rope{c.n_heads, c.head_dim, 0, c.head_dim, interleaved}, loader.machine);
  a.rope_k_ = plan(gannet::Rope{c.n_kv_heads, c.head_dim, 0, c.head_dim, interleaved}, loader.machine);
  a.append_ = plan(KvAppend{static_cast<int32_t>(kv_width), DType::f32, loader.cache_format}, loader.machine);

  // YaRN multiplies cos and sin of queries and keys by a factor; over whole heads that is the scores times its
  // square.
  const double factor = rope.scaling == RopeScaling::yarn ? rope.attention_factor : 1;
  AttentionGqa op{c.n_heads, c.n_kv_heads, c.head_dim};
  op.window = local ? c.sliding_window : 0;
  op.scale = static_cast<float>(c.query_scale * factor * factor);
  op.format = loader.cache_format;
  a.attend_ = plan(op, loader.machine);
  return a;
}

View Attention::forward(Pass& pass, View x) const {
  const Step& s = pass.step;
  const int64_t T = x.dim(0);
  const PagedRows keys = pass.store.plane(plane_k_, s.block_table, s.max_blocks);
  const PagedRows values = pass.store.plane(plane_v_, s.block_table, s.max_blocks);
  const float* table = local_ ? pass.rope_local : pass.rope;
  const View q = pass.tensor(T, int64_t{heads_} * head_dim_);
  const View k = pass.tensor(T, int64_t{kv_heads_} * head_dim_);
  const View v = pass.tensor(T, int64_t{kv_heads_} * head_dim_);
  qkv_.forward(pass, x, {&q_, &k_, &v_}, {q, k, v});          // [T,HD] [T,GD] [T,GD]
  const View q_heads = q.reshape({T, heads_, head_dim_});     // [T,H,D]
  const View k_heads = k.reshape({T, kv_heads_, head_dim_});  // [T,G,D]
  if (norm_q_) {
    const View q_rows = q.reshape({T * heads_, head_dim_}), k_rows = k.reshape({T * kv_heads_, head_dim_});
    norm_q_->forward(pass, q_rows, q_rows);  // [TH,D]
    norm_k_->forward(pass, k_rows, k_rows);  // [TG,D]
  }
  rope_q_({q_heads, nullptr, nullptr, table}, pass.exec);  // [T,H,D]
  rope_k_({k_heads, nullptr, nullptr, table}, pass.exec);  // [T,G,D]
  append_({k, s.row_seq, s.row_pos, keys}, pass.exec);
  append_({v, s.row_seq, s.row_pos, values}, pass.exec);
  const View out = pass.tensor(T, int64_t{heads_} * head_dim_);  // [T,HD]
  attend_({q_heads, s.row_seq, s.row_pos, keys, values, s.max_pos, out.reshape({T, heads_, head_dim_})}, pass.exec);
  return o_.forward(pass, out);  // [T,C]
}

int64_t Attention::workspace_bytes(int32_t rows, int32_t max_pos, int32_t n_threads) const {
  const int64_t widths = int64_t{2 * heads_ + 2 * kv_heads_} * head_dim_ + o_.weight().out;
  int64_t op_bytes = attention_gqa_workspace_bytes(attend_.op, rows, max_pos, n_threads);
  for (const Projection* p : {&q_, &k_, &v_, &o_})
    op_bytes = std::max(op_bytes, p->workspace_bytes(rows, n_threads));
  return rows * widths * 4 + op_bytes + 9 * 64;
}

}  // namespace gannet::llama
