#include "model/deepseek_v41/indexer.h"

#include <cmath>

#include "model/deepseek_v41/rope_tables.h"

namespace gannet::deepseek_v41 {

Indexer::Indexer(const Config& c, int32_t layer, const IndexerWeights& w, const CacheMap& map,
                 const Precision& precision, const Machine& machine)
    : layer_(layer),
      heads_(c.index_heads),
      width_(c.index_head_dim),
      keys_plane_(map.keys[static_cast<size_t>(layer)]),
      quantizes_(!precision.exact()),
      frequency_(rope_frequencies(c, true)) {
  const DType type = precision.activation();
  wq_b_ = Projection(w.wq_b, type, precision, machine);
  weights_proj_ = Projection(w.weights_proj, type, precision, machine);
  rope_ = plan(Rope{heads_, width_, width_ - c.rope_dim, c.rope_dim, true, false, type}, machine);
  if (quantizes_) quantize_ = plan(QuantizeRows{RowFormat::fp4_ue8m0, width_, heads_, type, type}, machine);

  IndexSelect op;
  op.heads = heads_;
  op.width = width_;
  op.topk = c.index_topk;
  op.ratio = c.ratios[static_cast<size_t>(layer)];
  op.weight_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(heads_) * width_));
  if (c.candidate_source >= 0 && layer >= c.candidate_source) {
    op.role = layer == c.candidate_source ? CandidateRole::publish : CandidateRole::restrict_to;
    op.block_size = c.candidate_block_size;
    op.max_blocks = c.candidate_blocks;
  }
  op.query = op.weight = type;
  op.keys = precision.index_key();
  select_ = plan(op, machine);
}

void Indexer::select(StepContext& s, const View& x, const View& qr) const {
  const int64_t T = x.dim(0);
  const View q = wq_b_(s, qr);  // [T, H d]
  rope_({q.reshape({T, heads_, width_}), s.rows.pos, frequency_.data()}, s.exec);
  if (quantizes_) quantize_({q, q}, s.exec);
  IndexSelectArgs args;
  args.query = q.reshape({T, heads_, width_});
  args.weight = weights_proj_(s, x);  // [T, H]
  args.keys = s.plane(keys_plane_);
  args.row_seq = s.rows.seq;
  args.row_pos = s.rows.pos;
  args.max_pos = s.step.max_pos;
  args.selected = s.selected;
  args.n_selected = s.n_selected;
  args.candidates = s.candidates;
  args.n_candidates = s.n_candidates;
  select_(args, s.exec);
  if (select_.op.role == CandidateRole::publish) {
    s.show(layer_, "n_candidates", View(s.n_candidates, DType::i32, {T}));
    s.show(layer_, "candidates", View(s.candidates, DType::i32, {T, select_.op.max_blocks}));
  }
  s.show(layer_, "n_selected", View(s.n_selected, DType::i32, {T}));
  s.show(layer_, "selected", View(s.selected, DType::i32, {T, select_.op.topk}));
}

}  // namespace gannet::deepseek_v41
