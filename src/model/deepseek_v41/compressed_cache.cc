#include "model/deepseek_v41/compressed_cache.h"

#include "model/deepseek_v41/rope_tables.h"

namespace gannet::deepseek_v41 {

CompressedCache::CompressedCache(const Config& c, int32_t layer, CompressorWeights w, const CacheMap& map,
                                 const Precision& precision, const Machine& machine)
    : layer_(layer),
      ratio_(c.ratios[static_cast<size_t>(layer)]),
      width_(c.head_dim),
      key_width_(c.index_head_dim),
      pending_(map.pending[static_cast<size_t>(layer)]),
      rows_plane_(map.compressed[static_cast<size_t>(layer)]),
      keys_plane_(map.keys[static_cast<size_t>(layer)]),
      type_(precision.activation()),
      frequency_(rope_frequencies(c, true)) {
  const int32_t D = width_, d = key_width_, r = c.rope_dim;
  // Pooling works on fp32 products; a ratio of 1 rounds its product as any other.
  wkv_ = Projection(w.wkv, ratio_ > 1 ? DType::f32 : type_, precision, machine);
  if (ratio_ > 1) {
    wgate_ = Projection(w.wgate, DType::f32, precision, machine);
    write_pairs_ = plan(WriteStepRows{2 * D, RowFormat::f32, DType::f32}, machine);
    commit_pairs_ = plan(CommitRing{2 * D, RowFormat::f32}, machine);
    pool_ = plan(PoolRows{D, ratio_, type_}, machine);
  }
  wk_ = Projection(w.wk, type_, precision, machine);
  norm_ = Norm(w.norm, c.rms_eps, precision, machine);
  k_norm_ = Norm(w.k_norm, c.rms_eps, precision, machine);
  clear_ = plan(ClearTags{}, machine);
  group_start_ = plan(GroupStart{ratio_}, machine);
  rope_row_ = plan(Rope{1, D, D - r, r, true, false, type_}, machine);
  rope_key_ = plan(Rope{1, d, d - r, r, true, false, type_}, machine);
  append_row_ = plan(AppendRows{D, ratio_, precision.compressed(), type_}, machine);
  append_key_ = plan(AppendRows{d, ratio_, precision.index_key(), type_}, machine);
}

View CompressedCache::latent(StepContext& s, const View& x) const {
  const int64_t T = x.dim(0);
  if (ratio_ == 1) return norm_(s, wkv_(s, x));              // [T, D]
  const View pairs = s.tensor(DType::f32, {T, 2 * width_});  // [T, kv | gate]
  wkv_.into(s, x, pairs.columns(0, width_));
  wgate_.into(s, x, pairs.columns(width_, width_));
  const StepRows own = make_step_rows(s.exec.arena, static_cast<int32_t>(T), 2 * width_, RowFormat::f32);
  clear_({own}, s.exec);
  write_pairs_({pairs, nullptr, s.step.row_pos, own}, s.exec);
  const View pooled = s.tensor(type_, {T, width_});  // [T, D]
  pool_({s.recent(own, pending_), s.step.row_seq, s.step.row_pos, pooled}, s.exec);
  commit_pairs_({own, s.step.row_seq, s.step.seq_first_pos, s.step.seq_n_rows, s.ring(pending_)}, s.exec);
  return norm_(s, pooled);
}

void CompressedCache::write(StepContext& s, const View& x) const {
  const int64_t T = x.dim(0);
  int32_t* start = s.exec.arena.array<int32_t>(T);
  group_start_({s.step.row_pos, static_cast<int32_t>(T), start}, s.exec);
  const View row = latent(s, x);             // [T, D]
  const View key = k_norm_(s, wk_(s, row));  // [T, d]: before rotation
  rope_key_({key.reshape({T, 1, key_width_}), start, frequency_.data()}, s.exec);
  rope_row_({row.reshape({T, 1, width_}), start, frequency_.data()}, s.exec);
  append_key_({key, s.step.row_seq, s.step.row_pos, s.plane(keys_plane_)}, s.exec);
  append_row_({row, s.step.row_seq, s.step.row_pos, s.plane(rows_plane_)}, s.exec);
}

}  // namespace gannet::deepseek_v41
