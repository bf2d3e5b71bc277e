// Index sources: queries and weights of the indexer, and the selection for each row that runs the layer.
#pragma once

#include "kernels/index_select.h"
#include "kernels/rope.h"
#include "model/deepseek_v41/cache.h"
#include "model/deepseek_v41/context.h"
#include "model/deepseek_v41/weights.h"

namespace gannet::deepseek_v41 {

class Indexer {
 public:
  Indexer(const Config& config, int32_t layer, const IndexerWeights& weights, const CacheMap& map,
          const Precision& precision, const Machine& machine);

  // Writes s.selected (and s.candidates, at the candidate source) for the rows of x.
  //   x [T, C] the attention's input;  qr [T, q rank] its low-rank query
  void select(StepContext& s, const View& x, const View& qr) const;

  int64_t workspace_bytes(int32_t max_pos, int n_threads) const {
    return index_select_workspace(select_.op, max_pos, n_threads);
  }

 private:
  int32_t layer_, heads_, width_;
  int keys_plane_;
  bool quantizes_;
  std::vector<float> frequency_;
  Projection wq_b_, weights_proj_;
  Planned<Rope, RopeArgs> rope_;
  Planned<QuantizeRows, QuantizeRowsArgs> quantize_;
  Planned<IndexSelect, IndexSelectArgs> select_;
};

}  // namespace gannet::deepseek_v41
