// Log-probabilities of the raw logits: before masks, penalties, bias and temperature, as OpenAI's API and vLLM
// report.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sample/vocab_ops.h"

namespace gannet::sample {

struct TokenLogprob {
  int32_t id = -1;
  float logprob = 0;  // natural logarithm, <= 0; -infinity where the logit is
};

// log(sum(exp(logits))), within 3e-7 of the exact value relative to the largest logit's ulp. Some logit is finite.
double log_sum_exp(std::span<const float> logits, const VocabOps& ops);

// The n most likely tokens, falling, ties to the lower id; fewer where fewer are above -infinity. n <= 20.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int32_t n, double log_sum);

inline float logprob_of(std::span<const float> logits, int32_t id, double log_sum) {
  return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(id)]) - log_sum);
}

}  // namespace gannet::sample
