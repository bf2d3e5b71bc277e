// One layer: Engram where it has one, attention site, expert site.
#pragma once

#include <optional>

#include "model/deepseek_v41/attention_csa2.h"
#include "model/deepseek_v41/engram.h"
#include "model/deepseek_v41/hyper_connection.h"
#include "model/deepseek_v41/moe.h"

namespace gannet::deepseek_v41 {

class Layer {
 public:
  Layer(const Config& config, int32_t layer, LayerWeights weights, const CacheMap& map,
        comm::ExpertParallel& experts, const Precision& precision, const Machine& machine);

  // h [N, S, C], in place; nothing for a layer without Engram.
  void engram(StepContext& s, View h, const int64_t* row_ids) const;

  // The compressed rows and index keys of a kv source, for every row of the step.
  void write_compressed(StepContext& s, const View& h, const View& pre) const;

  // h [N, S, C] and pre f32 [N, S] of the first N of s.rows: all write their window row, the first n_run go through
  // the layer, in place.
  void forward(StepContext& s, View h, View pre, int32_t n_run) const;

  int64_t workspace_bytes(int32_t max_pos, int n_threads) const {
    return attention_.workspace_bytes(max_pos, n_threads);
  }

 private:
  HyperConnection attention_site_, moe_site_;
  Attention attention_;
  Moe moe_;
  std::optional<Engram> engram_;
};

}  // namespace gannet::deepseek_v41
