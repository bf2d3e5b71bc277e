#include "model/deepseek_v41/attention_csa2.h"

#include <cmath>

#include "model/deepseek_v41/rope_tables.h"

namespace gannet::deepseek_v41 {

Attention::Attention(const Config& c, int32_t layer, AttentionWeights w, const CacheMap& map,
                     const Precision& precision, const Machine& machine)
    : layer_(layer),
      heads_(c.n_heads),
      width_(c.head_dim),
      window_(map.window[static_cast<size_t>(layer)]),
      rows_plane_(map.compressed[static_cast<size_t>(layer)]),
      sink_(w.sink),
      frequency_(rope_frequencies(c, rows_plane_ >= 0)) {
  const DType type = precision.activation();
  const int32_t H = heads_, D = width_, r = c.rope_dim;
  wq_a_ = Projection(w.wq_a, type, precision, machine);
  wq_b_ = Projection(w.wq_b, type, precision, machine);
  wkv_ = Projection(w.wkv, type, precision, machine);
  wo_a_ = Projection::grouped(w.wo_a, c.o_groups, type, precision, machine);
  wo_b_ = Projection(w.wo_b, type, precision, machine);
  q_norm_ = Norm(w.q_norm, c.rms_eps, precision, machine);
  kv_norm_ = Norm(w.kv_norm, c.rms_eps, precision, machine);
  rope_q_ = plan(Rope{H, D, D - r, r, true, false, type}, machine);
  rope_kv_ = plan(Rope{1, D, D - r, r, true, false, type}, machine);
  unrope_o_ = plan(Rope{H, D, D - r, r, true, true, type}, machine);
  clear_ = plan(ClearTags{}, machine);
  write_window_ = plan(WriteStepRows{D, precision.window(), type}, machine);
  commit_window_ = plan(CommitRing{D, precision.window()}, machine);

  SparseAttention op;
  op.heads = H;
  op.width = D;
  op.window = c.window;
  op.topk = rows_plane_ >= 0 ? c.index_topk : 0;
  op.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(D)));
  op.round_p = precision.round_p();
  op.q = op.out = type;
  attend_ = plan(op, machine);
  if (w.compressor) compressed_.emplace(c, layer, std::move(*w.compressor), map, precision, machine);
  if (w.indexer) indexer_.emplace(c, layer, *w.indexer, map, precision, machine);
}

void Attention::write_compressed(StepContext& s, const View& x) const {
  if (compressed_) compressed_->write(s, x);
}

StepRows Attention::window_rows(StepContext& s, const View& x) const {
  const int64_t N = x.dim(0);
  const View kv = kv_norm_(s, wkv_(s, x));  // [N, D]
  rope_kv_({kv.reshape({N, 1, width_}), s.rows.pos, frequency_.data()}, s.exec);
  const StepRows window = make_step_rows(s.exec.arena, s.step.n_rows, width_, write_window_.op.format);
  clear_({window}, s.exec);
  write_window_({kv, s.rows.index, s.rows.pos, window}, s.exec);
  return window;
}

View Attention::forward(StepContext& s, const View& x, int32_t n_run) const {
  const StepRows window = window_rows(s, x);
  const View run = x.rows(0, n_run);  // [T, C]
  View y = run;
  if (n_run > 0) {
    const int64_t T = n_run;
    const View qr = q_norm_(s, wq_a_(s, run));                 // [T, q rank]
    const View q = wq_b_(s, qr).reshape({T, heads_, width_});  // [T, H, D]
    rope_q_({q, s.rows.pos, frequency_.data()}, s.exec);
    if (indexer_) indexer_->select(s, run, qr);

    SparseAttentionArgs args;
    args.q = q;
    args.row_seq = s.rows.seq;
    args.row_pos = s.rows.pos;
    args.recent = s.recent(window, window_);
    if (rows_plane_ >= 0) {
      args.rows = s.plane(rows_plane_);
      args.selected = s.selected;
      args.n_selected = s.n_selected;
    }
    args.sink = sink_.data();
    args.out = s.tensor(q.dtype, {T, heads_, width_});  // [T, H, D]
    attend_(args, s.exec);
    unrope_o_({args.out, s.rows.pos, frequency_.data()}, s.exec);
    const View z = wo_a_(s, args.out.reshape({T, int64_t{heads_} * width_}));  // [T, groups * o rank]
    y = wo_b_(s, z);                                                           // [T, C]
  }
  commit_window_({window, s.step.row_seq, s.step.seq_first_pos, s.step.seq_n_rows, s.ring(window_)}, s.exec);
  s.show(layer_, "attention", y);
  return y;
}

int64_t Attention::workspace_bytes(int32_t max_pos, int n_threads) const {
  const int64_t index = indexer_ ? indexer_->workspace_bytes(max_pos, n_threads) : 0;
  return sparse_attention_workspace(attend_.op, n_threads) + index;
}

}  // namespace gannet::deepseek_v41
