// Writer of a kv source's compressed rows and index keys.
#pragma once

#include "kernels/compressor.h"
#include "kernels/rope.h"
#include "model/deepseek_v41/cache.h"
#include "model/deepseek_v41/context.h"
#include "model/deepseek_v41/weights.h"

namespace gannet::deepseek_v41 {

class CompressedCache {
 public:
  CompressedCache(const Config& config, int32_t layer, CompressorWeights weights, const CacheMap& map,
                  const Precision& precision, const Machine& machine);

  // x [T, C]: the attention's input of every row of the step, in the step's order.
  void write(StepContext& s, const View& x) const;

 private:
  View latent(StepContext& s, const View& x) const;  // [T, D]; of rows that close a group

  int32_t layer_, ratio_, width_, key_width_;
  int pending_, rows_plane_, keys_plane_;
  DType type_;
  std::vector<float> frequency_;
  Projection wkv_, wgate_, wk_;
  Norm norm_, k_norm_;
  Planned<ClearTags, ClearTagsArgs> clear_;
  Planned<WriteStepRows, WriteStepRowsArgs> write_pairs_;
  Planned<CommitRing, CommitRingArgs> commit_pairs_;
  Planned<GroupStart, GroupStartArgs> group_start_;
  Planned<PoolRows, PoolRowsArgs> pool_;
  Planned<Rope, RopeArgs> rope_row_, rope_key_;
  Planned<AppendRows, AppendRowsArgs> append_row_, append_key_;
};

}  // namespace gannet::deepseek_v41
