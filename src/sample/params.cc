#include "sample/params.h"

#include <fmt/format.h>

#include <string_view>

namespace gannet::sample {
namespace {

// A NaN fails every comparison, so it is out of every range.
Status in_range(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return ok();
  return Error{Errc::bad_request, fmt::format("{} must be between {} and {}, got {}", name, low, high, value)};
}

Status is_token(std::string_view name, int32_t id, int32_t vocab) {
  if (id >= 0 && id < vocab) return ok();
  return Error{Errc::bad_request, fmt::format("{}: {} is no token id, the vocabulary has {}", name, id, vocab)};
}

Status validate_tokens(const SamplingParams& params, int32_t vocab) {
  if (params.logit_bias.size() > static_cast<size_t>(kMaxLogitBiases))
    return Error{Errc::bad_request, fmt::format("logit_bias has {} entries, at most {} are taken",
                                                params.logit_bias.size(), kMaxLogitBiases)};
  for (const auto& [id, bias] : params.logit_bias) {
    GANNET_TRY(is_token("logit_bias", id, vocab));
    GANNET_TRY(in_range(fmt::format("logit_bias of token {}", id), bias, -100, 100));
  }
  for (const int32_t id : params.allowed_token_ids) GANNET_TRY(is_token("allowed_token_ids", id, vocab));
  for (const int32_t id : params.stop_token_ids) GANNET_TRY(is_token("stop_token_ids", id, vocab));
  return ok();
}

}  // namespace

bool SamplingParams::greedy() const { return temperature < kGreedyTemperature; }

bool SamplingParams::changes_logits(int32_t n_generated) const {
  return !logit_bias.empty() || !allowed_token_ids.empty() || presence_penalty != 0 || frequency_penalty != 0 ||
         repetition_penalty != 1 || (n_generated < min_tokens && !stop_token_ids.empty());
}

Status validate(const SamplingParams& params, int32_t vocab) {
  GANNET_TRY(in_range("temperature", params.temperature, 0, 2));
  if (!(params.top_p > 0 && params.top_p <= 1))
    return Error{Errc::bad_request, fmt::format("top_p must be above 0 and at most 1, got {}", params.top_p)};
  if (params.top_k < -1)
    return Error{Errc::bad_request,
                 fmt::format("top_k must be at least 1, or 0 or -1 for off, got {}", params.top_k)};
  GANNET_TRY(in_range("min_p", params.min_p, 0, 1));
  GANNET_TRY(in_range("presence_penalty", params.presence_penalty, -2, 2));
  GANNET_TRY(in_range("frequency_penalty", params.frequency_penalty, -2, 2));
  GANNET_TRY(in_range("repetition_penalty", params.repetition_penalty, 0.01, 100));
  if (params.min_tokens < 0)
    return Error{Errc::bad_request, fmt::format("min_tokens must not be negative, got {}", params.min_tokens)};
  if (params.top_logprobs < -1 || params.top_logprobs > kMaxTopLogprobs)
    return Error{Errc::bad_request, fmt::format("top_logprobs must be between 0 and {}, got {}", kMaxTopLogprobs,
                                                params.top_logprobs)};
  return validate_tokens(params, vocab);
}

}  // namespace gannet::sample
