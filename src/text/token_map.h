// The compressed vocabulary of V4.1's Engram: ids whose texts differ only in case, marks, width or blanks share one
// entry.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace gannet {

struct EngramTokenMap {
  std::vector<int32_t> compressed;  // i32 [n_ids], token id -> compressed id, numbered by first appearance
  int32_t n_compressed = 0;
};

// Builds the map for ids 0 .. n_ids-1. Refuses a tokenizer that is not byte-level, an id without token, and, when
// `want_compressed` is not 0, another count than that (the multipliers of every hash depend on it; the count
// follows the Unicode version, 14 here, as well as the vocabulary).
//
// Thread  any; reads the tokenizer only.
// Source  DeepSeek-V4.1-Flash, Engram token compression.
Result<EngramTokenMap> engram_token_map(const Tokenizer& tokenizer, int32_t n_ids, int32_t want_compressed);

}  // namespace gannet
