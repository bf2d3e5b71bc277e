#include "sample/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace gannet::sample {

double log_sum_exp(std::span<const float> logits, const VocabOps& ops) {
  const auto n = static_cast<int32_t>(logits.size());
  const int32_t best = ops.argmax(logits.data(), n);
  GANNET_CHECK(best >= 0, "no logit of {} is above -infinity", n);
  const float largest = logits[static_cast<size_t>(best)];
  const int64_t mass = ops.total_mass(logits.data(), n, largest);
  return static_cast<double>(largest) + std::log(std::ldexp(static_cast<double>(mass), -kMassBits));
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int32_t n, double log_sum) {
  std::vector<TokenLogprob> top;  // holds logits until the end
  float worst = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; n > 0 && i < logits.size(); ++i) {
    if (!(logits[i] > worst)) continue;
    const TokenLogprob entry{static_cast<int32_t>(i), logits[i]};
    top.insert(std::upper_bound(top.begin(), top.end(), entry,
                                [](const TokenLogprob& a, const TokenLogprob& b) { return a.logprob > b.logprob; }),
               entry);
    if (top.size() > static_cast<size_t>(n)) top.pop_back();
    if (top.size() == static_cast<size_t>(n)) worst = top.back().logprob;
  }
  for (TokenLogprob& entry : top) entry.logprob = logprob_of(logits, entry.id, log_sum);
  return top;
}

}  // namespace gannet::sample
