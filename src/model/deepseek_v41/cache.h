// What a V4.1 model keeps of a sequence, and where each layer finds its part.
//
//   planes  for each kv source: compressed rows (width D) and index keys, one row for every `ratio` tokens
//   rings   for each layer, draft stages included: window rows; for each kv source of ratio > 1: the [kv | gate]
//   pairs
//           of the last tokens; the compressed token ids that Engram looks back on
//   Rings hold W + 2 (gamma + 1) positions (the others their own reach likewise), gamma tokens drafted at once: two
//   rounds of verification in flight can be undone.
#pragma once

#include <vector>

#include "kv/store/kv_spec.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/precision.h"

namespace gannet::deepseek_v41 {

struct CacheMap {
  // By layer; -1 where a layer has none of its own or none to read.
  std::vector<int> window;      // ring, [n_layers]
  std::vector<int> pending;     // ring
  std::vector<int> compressed;  // plane that the layer reads
  std::vector<int> keys;        // plane that the layer's indexer reads
  std::vector<int> draft;       // ring, [n_stages]
  int engram_ids = -1;          // ring
};

kv::KvSpec cache_spec(const Config& config, const Precision& precision, CacheMap& map);

}  // namespace gannet::deepseek_v41
