#include "sample/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "sample/random.h"

namespace gannet::sample {
namespace {

// Up to so many candidates get their noise one at a time; beyond, a pass over the vocabulary is cheaper.
constexpr size_t kFewCandidates = 128;

}  // namespace

Sampler::Sampler(int32_t vocab, const Machine& machine)
    : ops_(vocab_ops(machine)), processed_(static_cast<size_t>(vocab)), scaled_(static_cast<size_t>(vocab)) {}

Result<Sampled> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                                const SampleContext& context) {
  GANNET_CHECK(logits.size() == scaled_.size(), "{} logits, vocabulary of {}", static_cast<int64_t>(logits.size()),
               static_cast<int64_t>(scaled_.size()));
  std::span<const float> changed = logits;
  if (!context.mask.empty() || params.changes_logits(context.n_generated)) {
    static const TokenCounts kNone;
    std::copy(logits.begin(), logits.end(), processed_.begin());
    apply_processors(processed_, params, context.counts == nullptr ? kNone : *context.counts, context.n_generated,
                     context.mask);
    changed = processed_;
  }
  const int32_t best = ops_.argmax(changed.data(), static_cast<int32_t>(changed.size()));
  if (best < 0 || !std::isfinite(changed[static_cast<size_t>(best)]))
    return Error{Errc::bad_request,
                 fmt::format("token {}: none can be chosen, every logit is masked or not a finite number",
                             context.token_index)};
  Sampled result;
  result.token = params.greedy() ? best : draw(changed, best, params, context.token_index);
  if (params.top_logprobs >= 0) {
    const double log_sum = log_sum_exp(logits, ops_);
    result.logprob = logprob_of(logits, result.token, log_sum);
    result.top = top_logprobs(logits, params.top_logprobs, log_sum);
  }
  return result;
}

int32_t Sampler::draw(std::span<const float> logits, int32_t best, const SamplingParams& params,
                      uint32_t token_index) {
  const auto n = static_cast<int32_t>(logits.size());
  ops_.scale(logits.data(), n, logits[static_cast<size_t>(best)], static_cast<float>(params.temperature),
             scaled_.data());
  const NoiseKey key = sample_key(params.seed, params.choice, token_index);
  return has_filters(params) ? draw_filtered(params, key) : ops_.noisy_argmax(scaled_.data(), n, key);
}

int32_t Sampler::draw_filtered(const SamplingParams& params, const NoiseKey& key) {
  filter(scaled_, params, ops_, scratch_, candidates_);
  if (candidates_.size() <= kFewCandidates) {
    float best = -std::numeric_limits<float>::infinity();
    int32_t token = -1;
    for (const Candidate& c : candidates_)
      if (const float score = c.x + gumbel(key, static_cast<uint32_t>(c.id)); score > best) {
        best = score;
        token = c.id;
      }
    return token;
  }
  std::fill(scaled_.begin(), scaled_.end(), -std::numeric_limits<float>::infinity());
  for (const Candidate& c : candidates_) scaled_[static_cast<size_t>(c.id)] = c.x;
  return ops_.noisy_argmax(scaled_.data(), static_cast<int32_t>(scaled_.size()), key);
}

}  // namespace gannet::sample
