// Attention of one layer: queries of low rank, one shared key/value vector a token, the sliding window and selected
// rows of a compressed cache in one softmax, grouped output projection of low rank.
#pragma once

#include <optional>

#include "kernels/rope.h"
#include "kernels/sparse_attention.h"
#include "model/deepseek_v41/cache.h"
#include "model/deepseek_v41/compressed_cache.h"
#include "model/deepseek_v41/context.h"
#include "model/deepseek_v41/indexer.h"
#include "model/deepseek_v41/weights.h"

namespace gannet::deepseek_v41 {

class Attention {
 public:
  Attention(const Config& config, int32_t layer, AttentionWeights weights, const CacheMap& map,
            const Precision& precision, const Machine& machine);

  // A kv source's compressed rows and keys, for every row of the step: x [T, C]. Other layers: nothing.
  void write_compressed(StepContext& s, const View& x) const;

  // x [N, C], one for each of the first N of s.rows: all of them write their window row, the first n_run attend.
  // Returns [n_run, C].
  View forward(StepContext& s, const View& x, int32_t n_run) const;

  int64_t workspace_bytes(int32_t max_pos, int n_threads) const;

 private:
  StepRows window_rows(StepContext& s, const View& x) const;

  int32_t layer_, heads_, width_;
  int window_, rows_plane_;
  std::vector<float> sink_, frequency_;
  Projection wq_a_, wq_b_, wkv_, wo_a_, wo_b_;
  Norm q_norm_, kv_norm_;
  Planned<Rope, RopeArgs> rope_q_, rope_kv_, unrope_o_;
  Planned<ClearTags, ClearTagsArgs> clear_;
  Planned<WriteStepRows, WriteStepRowsArgs> write_window_;
  Planned<CommitRing, CommitRingArgs> commit_window_;
  Planned<SparseAttention, SparseAttentionArgs> attend_;
  std::optional<CompressedCache> compressed_;
  std::optional<Indexer> indexer_;
};

}  // namespace gannet::deepseek_v41
