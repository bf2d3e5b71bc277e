// From one row of logits to one token.
//
// The draw is Gumbel-argmax: the kept token of largest (logit - largest) / temperature + noise, in fp32, ties to
// the lower id. The noise of a token is a function of (seed, choice, index of the token in its sequence, id) alone,
// so the same request gives the same text whatever else runs, however it is batched, chunked or speculated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "sample/filters.h"
#include "sample/logprobs.h"
#include "sample/params.h"
#include "sample/processors.h"
#include "sample/vocab_ops.h"

namespace gannet::sample {

struct Sampled {
  int32_t token = -1;
  float logprob = 0;              // of the token; 0 where params.top_logprobs is -1
  std::vector<TokenLogprob> top;  // params.top_logprobs entries
};

// What the sequence says about the token to be sampled.
struct SampleContext {
  const TokenCounts* counts = nullptr;  // may be null where no penalty is set
  int32_t n_generated = 0;              // tokens generated before this one
  uint32_t token_index = 0;             // index of the sampled token in the sequence, prompt included
  TokenMask mask;                       // empty: all tokens allowed
};

// Holds scratch for one vocabulary. One thread at a time.
class Sampler {
 public:
  Sampler(int32_t vocab, const Machine& machine);

  // logits f32 [V]. `params` has been validated for V. Fails with bad_request where no token is left to choose
  // (masks forbid all) or where the largest logit is not a finite number (the model's output is broken).
  Result<Sampled> sample(std::span<const float> logits, const SamplingParams& params, const SampleContext& context);

 private:
  int32_t draw(std::span<const float> logits, int32_t best, const SamplingParams& params, uint32_t token_index);
  int32_t draw_filtered(const SamplingParams& params, const NoiseKey& key);

  const VocabOps& ops_;
  std::vector<float> processed_, scaled_;  // [V]
  FilterScratch scratch_;
  std::vector<Candidate> candidates_;
};

}  // namespace gannet::sample
