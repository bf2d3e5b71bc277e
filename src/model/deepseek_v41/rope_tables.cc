#include "model/deepseek_v41/rope_tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gannet::deepseek_v41 {

std::vector<float> rope_frequencies(const Config& config, bool compressed) {
  const double theta = compressed ? config.compress_rope_theta : config.rope_theta;
  const int32_t n = config.rope_dim;
  std::vector<float> frequency;
  for (int32_t i = 0; i < n / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(n);
    frequency.push_back(1.0f / static_cast<float>(std::pow(theta, double{exponent})));
  }
  const Yarn& yarn = config.yarn;
  if (!compressed || !yarn.on) return frequency;
  // Pair index whose wavelength makes `turns` turns over the original context.
  const auto pair_of = [&](double turns) {
    return n * std::log(static_cast<double>(yarn.original_context) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  const double low = std::max(std::floor(pair_of(yarn.beta_fast)), 0.0);
  const double high = std::min(std::ceil(pair_of(yarn.beta_slow)), n - 1.0);
  for (int32_t i = 0; i < n / 2; ++i) {
    float& f = frequency[static_cast<size_t>(i)];
    const auto ramp = static_cast<float>(std::clamp((i - low) / std::max(high - low, 0.001), 0.0, 1.0));
    f = f / static_cast<float>(yarn.factor) * ramp + f * (1.0f - ramp);
  }
  return frequency;
}

}  // namespace gannet::deepseek_v41
