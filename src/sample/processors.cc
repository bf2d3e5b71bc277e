#include "sample/processors.h"

#include <limits>
#include <vector>

#include "base/check.h"

namespace gannet::sample {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

void apply_mask(std::span<float> logits, TokenMask mask) {
  GANNET_CHECK(mask.size() * 32 >= logits.size(), "{} words for {} logits", static_cast<int64_t>(mask.size()),
               static_cast<int64_t>(logits.size()));
  for (size_t i = 0; i < logits.size(); ++i)
    if ((mask[i / 32] >> (i % 32) & 1u) == 0) logits[i] = kForbidden;
}

void keep_only(std::span<float> logits, std::span<const int32_t> allowed) {
  std::vector<uint32_t> bits((logits.size() + 31) / 32);
  for (const int32_t id : allowed) bits[static_cast<size_t>(id) / 32] |= 1u << (static_cast<uint32_t>(id) % 32);
  apply_mask(logits, bits);
}

// Repetition first, as transformers and vLLM do; all in fp32.
float penalised(float logit, const SamplingParams& params, const TokenCounts::Count& count) {
  const auto repetition = static_cast<float>(params.repetition_penalty);
  if (repetition != 1) logit = logit > 0 ? logit / repetition : logit * repetition;
  if (count.generated > 0) {
    logit -= static_cast<float>(params.frequency_penalty) * static_cast<float>(count.generated);
    logit -= static_cast<float>(params.presence_penalty);
  }
  return logit;
}

}  // namespace

void TokenCounts::add_prompt(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) ++counts_[token].prompt;
}

void TokenCounts::remove(int32_t token) {
  const auto it = counts_.find(token);
  GANNET_CHECK(it != counts_.end() && it->second.generated > 0, "token {} was never added", token);
  if (--it->second.generated == 0 && it->second.prompt == 0) counts_.erase(it);
}

void apply_processors(std::span<float> logits, const SamplingParams& params, const TokenCounts& counts,
                      int32_t n_generated, TokenMask mask) {
  if (!mask.empty()) apply_mask(logits, mask);
  if (!params.allowed_token_ids.empty()) keep_only(logits, params.allowed_token_ids);
  if (n_generated < params.min_tokens)
    for (const int32_t id : params.stop_token_ids) logits[static_cast<size_t>(id)] = kForbidden;
  for (const auto& [id, bias] : params.logit_bias) logits[static_cast<size_t>(id)] += bias;
  if (params.repetition_penalty != 1 || params.frequency_penalty != 0 || params.presence_penalty != 0)
    for (const auto& [id, count] : counts.counts()) {
      GANNET_CHECK(id >= 0 && static_cast<size_t>(id) < logits.size(), "token {} of {}", id,
                   static_cast<int64_t>(logits.size()));
      logits[static_cast<size_t>(id)] = penalised(logits[static_cast<size_t>(id)], params, count);
    }
}

}  // namespace gannet::sample
