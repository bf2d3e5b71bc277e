// Passes over a whole row of logits: the parts of sampling that must be fast at 129,280 ids. Every variant gives
// the same bits; the scalar one is the reference and the fallback.
//
//   x, out  f32 [n], contiguous, any alignment
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/exec.h"
#include "sample/random.h"

namespace gannet::sample {

struct VocabOps {
  std::string_view name;
  bool (*fits)(const Machine& machine);
  // Index of the largest element, ties to the lower; NaN never wins. -1 when no element is above -infinity.
  int32_t (*argmax)(const float* x, int32_t n);
  // out = (x - largest) / temperature. `largest` is finite and the largest of x; a NaN in x becomes -infinity.
  void (*scale)(const float* x, int32_t n, float largest, float temperature, float* out);
  // Sum of mass(x - largest).
  int64_t (*total_mass)(const float* x, int32_t n, float largest);
  // out = exp(x), all x <= 0 (exp_negative of random.h). May be in place.
  void (*exp)(const float* x, int32_t n, float* out);
  // Index of the largest x[i] + gumbel(key, i), ties to the lower index. -1 when no x is above -infinity.
  int32_t (*noisy_argmax)(const float* x, int32_t n, const NoiseKey& key);
};

std::span<const VocabOps> vocab_ops_variants();  // fastest first, the scalar one last
const VocabOps& vocab_ops(const Machine& machine);

}  // namespace gannet::sample
