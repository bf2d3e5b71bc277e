// The filters between temperature and the draw: min_p, then top_k, then top_p, each on what the one before left.
//
// Tokens are ordered by falling probability, ties to the lower id; top_k and top_p keep a prefix of that order. All
// three are exact: masses are integers (random.h), so a sum does not depend on the order it is taken in.
//   min_p  keeps exp(x) >= min_p, decided as x >= log(min_p) in fp32
//   top_k  keeps exactly the first k
//   top_p  keeps the shortest prefix whose mass is at least ceil(top_p * mass of all that min_p and top_k left)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sample/params.h"
#include "sample/vocab_ops.h"

namespace gannet::sample {

struct Candidate {
  float x;      // (logit - largest) / temperature, <= 0
  float exp_x;  // where top_p is on
  int32_t id;
};

struct FilterScratch {
  std::vector<float> exp_x;  // [V]
  std::vector<int32_t> ids;
  std::vector<Candidate> at_cut;  // those among which a filter ends
};

bool has_filters(const SamplingParams& params);

// The tokens that remain, by rising id; never empty when some x is 0. x f32 [V]: scaled logits, each <= 0 or
// -infinity.
void filter(std::span<const float> x, const SamplingParams& params, const VocabOps& ops, FilterScratch& scratch,
            std::vector<Candidate>& candidates);

}  // namespace gannet::sample
