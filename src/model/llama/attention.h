// Grouped-query attention of one layer over the paged cache.
#pragma once

#include <optional>

#include "base/result.h"
#include "kernels/attention_gqa.h"
#include "kernels/kv_append.h"
#include "kernels/rope.h"
#include "model/llama/parts.h"

namespace gannet::llama {

class Attention {
 public:
  static Result<Attention> load(Loader& loader, int32_t layer);
  View forward(Pass& pass, View x) const;  // [T,C] -> [T,C]
  int64_t workspace_bytes(int32_t rows, int32_t max_pos, int32_t n_threads) const;

 private:
  int32_t heads_ = 0, kv_heads_ = 0, head_dim_ = 0;
  bool local_ = false;  // sees a sliding window
  int plane_k_ = 0, plane_v_ = 0;
  Projection q_, k_, v_, o_;
  JointProjection qkv_;
  std::optional<Norm> norm_q_, norm_k_;  // over D of each head
  Planned<gannet::Rope, RopeArgs> rope_q_, rope_k_;
  Planned<KvAppend, KvAppendArgs> append_;
  Planned<AttentionGqa, AttentionGqaArgs> attend_;
};

}  // namespace gannet::llama
