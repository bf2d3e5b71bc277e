// Engram: hashes of the last token ids once a step, and in each Engram layer the gated lookup.
#pragma once

#include "kernels/engram.h"
#include "model/deepseek_v41/cache.h"
#include "model/deepseek_v41/context.h"
#include "model/deepseek_v41/engram_hash.h"
#include "model/deepseek_v41/weights.h"

namespace gannet::deepseek_v41 {

// The row ids of every Engram layer, from the tokens alone.
class EngramIndex {
 public:
  EngramIndex() = default;
  // token_map: token id -> compressed id.
  EngramIndex(const Config& config, std::vector<int32_t> token_map, const CacheMap& map, const Machine& machine);

  // Returns i64 [T, columns] for each Engram layer, and remembers the last ids.
  std::vector<const int64_t*> rows(StepContext& s) const;

 private:
  std::vector<int32_t> token_map_;
  std::vector<EngramHashConstants> constants_;
  int ring_ = -1;
  int64_t columns_ = 0;
  Planned<EngramIds, EngramIdsArgs> ids_;
  Planned<EngramHash, EngramHashArgs> hash_;
  Planned<CommitRing, CommitRingArgs> commit_;
};

class Engram {
 public:
  Engram(const Config& config, int32_t layer, EngramWeights weights, const Precision& precision,
         const Machine& machine);

  // h [N, S, C] of the first N of s.rows, in place. row_ids i64 [rows of the step, columns].
  void forward(StepContext& s, View h, const int64_t* row_ids) const;

 private:
  int32_t layer_;
  EngramWeights w_;
  Planned<EngramGather, EngramGatherArgs> gather_;
  Planned<EngramGate, EngramGateArgs> gate_;
  Projection wkv_;
};

}  // namespace gannet::deepseek_v41
