#include "model/llama/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gannet::llama {
namespace {

constexpr double kTau = 2 * std::numbers::pi;

// Long wavelengths are stretched by `factor`, short ones kept, those between blended.
double llama3_scaled(double frequency, const Rope& rope) {
  const double turns = static_cast<double>(rope.original_context) * frequency / kTau;  // over the trained context
  if (turns < rope.low_freq_factor) return frequency / rope.factor;
  if (turns > rope.high_freq_factor) return frequency;
  const double keep = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - keep) * frequency / rope.factor + keep * frequency;
}

// Pair index at which a rotation makes `turns` turns over the trained context.
double yarn_pair(const Rope& rope, int32_t head_dim, double turns) {
  return head_dim * std::log(static_cast<double>(rope.original_context) / (turns * kTau)) /
         (2 * std::log(rope.theta));
}

double yarn_scaled(double frequency, int32_t pair, const Rope& rope, int32_t head_dim) {
  const double low = std::max(std::floor(yarn_pair(rope, head_dim, rope.beta_fast)), 0.0);
  double high = std::min(std::ceil(yarn_pair(rope, head_dim, rope.beta_slow)), head_dim - 1.0);
  if (low == high) high += 0.001;  // the ramp must have a length
  const double ramp = std::clamp((pair - low) / (high - low), 0.0, 1.0);
  return frequency / rope.factor * ramp + frequency * (1 - ramp);
}

}  // namespace

std::vector<float> rope_frequencies(const Rope& rope, int32_t head_dim, std::span<const double> divisors) {
  std::vector<float> out(static_cast<size_t>(head_dim / 2));
  for (int32_t i = 0; i < head_dim / 2; ++i) {
    double f = std::pow(rope.theta, -2.0 * i / head_dim);
    if (rope.scaling == RopeScaling::linear) f /= rope.factor;
    if (rope.scaling == RopeScaling::llama3) f = llama3_scaled(f, rope);
    if (rope.scaling == RopeScaling::yarn) f = yarn_scaled(f, i, rope, head_dim);
    if (!divisors.empty()) f /= divisors[static_cast<size_t>(i)];
    out[static_cast<size_t>(i)] = static_cast<float>(f);
  }
  return out;
}

}  // namespace gannet::llama
