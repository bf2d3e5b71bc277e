// What a request may ask of sampling, and its limits. Names are those of the HTTP fields and flags.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gannet::sample {

struct SamplingParams {
  double temperature =
      1.0;             // 0..2; below kGreedyTemperature (and so -0.0 and 1e-38) the most likely token is taken
  double top_p = 1.0;  // (0, 1]: smallest set of most likely tokens whose probabilities reach top_p; 1 is off
  int32_t top_k = 0;   // most likely tokens kept; 0 and -1 are off
  double min_p = 0.0;  // 0..1: keeps tokens with p >= min_p * largest p
  double presence_penalty = 0.0;    // -2..2, subtracted from logits of tokens generated before
  double frequency_penalty = 0.0;   // -2..2, subtracted once for each time a token was generated
  double repetition_penalty = 1.0;  // 0.01..100: divides positive, multiplies negative logits of tokens seen
                                    // before, prompt included
  std::vector<std::pair<int32_t, float>> logit_bias;  // token id, -100..100
  std::vector<int32_t> allowed_token_ids;             // empty: all
  int32_t min_tokens = 0;                             // stop_token_ids are masked until so many were generated
  std::vector<int32_t> stop_token_ids;                // ids that end the text, the model's own included
  int32_t top_logprobs = -1;  // -1: none wanted; 0: of the chosen token; n <= 20: and the top n
  uint64_t seed = 0;
  uint32_t choice = 0;  // index among the n choices of one request

  bool greedy() const;
  bool changes_logits(int32_t n_generated) const;  // anything to do before temperature
};

constexpr double kGreedyTemperature = 1e-3;
constexpr int32_t kMaxTopLogprobs = 20;
constexpr int32_t kMaxLogitBiases = 1024;  // entries; OpenAI's SDKs send at most 300

// bad_request, naming the field and the value, unless every field is finite and in range and every token id is one
// of a vocabulary of `vocab`.
Status validate(const SamplingParams& params, int32_t vocab);

}  // namespace gannet::sample
