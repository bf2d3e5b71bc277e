#include "model/deepseek_v41/engram.h"

#include <utility>

namespace gannet::deepseek_v41 {

EngramIndex::EngramIndex(const Config& c, std::vector<int32_t> token_map, const CacheMap& map,
                         const Machine& machine)
    : token_map_(std::move(token_map)),
      constants_(engram_hash_constants(c.engram, c.engram.compressed_vocab)),
      ring_(map.engram_ids),
      columns_(c.engram.n_columns()) {
  const int32_t pad = token_map_[static_cast<size_t>(c.engram.pad_token)];
  ids_ = plan(EngramIds{static_cast<int32_t>(token_map_.size())}, machine);
  hash_ = plan(EngramHash{c.engram.max_ngram, c.engram.n_heads, pad}, machine);
  commit_ = plan(CommitRing{1, RowFormat::i32}, machine);
}

std::vector<const int64_t*> EngramIndex::rows(StepContext& s) const {
  const Step& step = s.step;
  const StepRows ids = make_step_rows(s.exec.arena, step.n_rows, 1, RowFormat::i32);
  ids_({token_map_.data(), step.row_token, step.row_pos, step.row_flags, row_is_image, ids}, s.exec);
  std::vector<const int64_t*> all;
  for (const EngramHashConstants& constants : constants_) {
    int64_t* row_ids = s.exec.arena.array<int64_t>(step.n_rows * columns_);
    hash_({s.recent(ids, ring_), step.row_seq, step.row_pos, step.n_rows, constants.multiplier.data(),
           constants.prime.data(), constants.offset.data(), row_ids},
          s.exec);
    all.push_back(row_ids);
  }
  commit_({ids, step.row_seq, step.seq_first_pos, step.seq_n_rows, s.ring(ring_)}, s.exec);
  return all;
}

Engram::Engram(const Config& c, int32_t layer, EngramWeights weights, const Precision& precision,
               const Machine& machine)
    : layer_(layer), w_(std::move(weights)) {
  const DType type = precision.activation();
  gather_ = plan(EngramGather{c.engram.n_columns(), c.engram.head_dim, w_.table.format, type}, machine);
  gate_ = plan(EngramGate{c.n_streams, c.hidden, static_cast<float>(c.rms_eps), type}, machine);
  wkv_ = Projection(w_.wkv, type, precision, machine);
}

void Engram::forward(StepContext& s, View h, const int64_t* row_ids) const {
  const View rows = s.tensor(h.dtype, {h.dim(0), w_.wkv.in});  // [N, columns * head dim]
  gather_({w_.table, row_ids, s.rows.index, rows}, s.exec);
  const View kv = wkv_(s, rows);                                                 // [N, (S + 1) C]
  gate_({kv, w_.q.data(), w_.k.data(), s.rows.flags, row_is_image, h}, s.exec);  // [N, S, C], in place
  s.show(layer_, "engram", h);
}

}  // namespace gannet::deepseek_v41
