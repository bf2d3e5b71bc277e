// What changes logits before temperature, in this order: mask (grammar), allowed ids, masked stop ids (min_tokens),
// logit bias, then penalties (repetition; frequency and presence).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "sample/params.h"

namespace gannet::sample {

// How often each token stands in a sequence: what penalties look at. Plain data: copy it, or take tokens back with
// remove(), which undoes add() exactly. Draft rows add their drafts, verify, and remove them again.
class TokenCounts {
 public:
  struct Count {
    int32_t prompt = 0, generated = 0;
    bool operator==(const Count&) const = default;
  };

  void add_prompt(std::span<const int32_t> tokens);
  void add(int32_t token) { ++counts_[token].generated; }
  void remove(int32_t token);  // one that was added; aborts otherwise
  const std::unordered_map<int32_t, Count>& counts() const { return counts_; }
  bool operator==(const TokenCounts&) const = default;

 private:
  std::unordered_map<int32_t, Count> counts_;
};

// One bit a token, id i in bit i % 32 of word i / 32; 0 forbids. As grammar engines produce it.
using TokenMask = std::span<const uint32_t>;

// Changes logits [V] in place. `mask` may be empty; `params` has been validated for V.
void apply_processors(std::span<float> logits, const SamplingParams& params, const TokenCounts& counts,
                      int32_t n_generated, TokenMask mask);

}  // namespace gannet::sample
