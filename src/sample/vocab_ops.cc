#include "sample/vocab_ops.h"

#include <array>

#include "base/check.h"
#include "sample/vocab_ops_lanes.h"

namespace gannet::sample {

extern const VocabOps kVocabOpsAvx2, kVocabOpsAvx512;  // vocab_ops_avx2.cc, vocab_ops_avx512.cc

namespace {

int32_t argmax(const float* x, int32_t n) {
  Best best;
  for (int32_t i = 0; i < n; ++i)
    if (x[i] > best.value) best = {x[i], i};
  return best.index;
}

void scale(const float* x, int32_t n, float largest, float temperature, float* out) {
  for (int32_t i = 0; i < n; ++i) out[i] = scale_one(x[i], largest, temperature);
}

int64_t total_mass(const float* x, int32_t n, float largest) {
  int64_t total = 0;
  for (int32_t i = 0; i < n; ++i) total += mass(x[i] - largest);
  return total;
}

void exp_each(const float* x, int32_t n, float* out) {
  for (int32_t i = 0; i < n; ++i) out[i] = exp_negative<OneLane>(x[i]);
}

int32_t noisy_argmax(const float* x, int32_t n, const NoiseKey& key) {
  Best best;
  for (int32_t i = 0; i < n; ++i)
    if (const float score = x[i] + gumbel(key, static_cast<uint32_t>(i)); score > best.value) best = {score, i};
  return best.index;
}

}  // namespace

std::span<const VocabOps> vocab_ops_variants() {
  static const std::array<VocabOps, 3> kVariants = {
      kVocabOpsAvx512, kVocabOpsAvx2,
      VocabOps{"scalar", [](const Machine&) { return true; }, argmax, scale, total_mass, exp_each, noisy_argmax}};
  return kVariants;
}

const VocabOps& vocab_ops(const Machine& machine) {
  for (const VocabOps& variant : vocab_ops_variants())
    if (variant.fits(machine)) return variant;
  GANNET_CHECK(false, "the scalar variant fits everything");
  return vocab_ops_variants().back();
}

}  // namespace gannet::sample
