#include <algorithm>
#include <numbers>

#include "kernels/args_check.h"
#include "kernels/gated_activation.h"

namespace gannet {
namespace {

double activate(Activation activation, double x) {
  if (activation == Activation::silu) return x / (1 + std::exp(-x));
  const double z = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x * (1 - 1 / (std::exp(2 * z) + 1));
}

void run(const GatedActivation& op, const GatedActivationArgs& args, Exec&) {
  check_gated_activation(op, args);
  for (int64_t t = 0; t < args.gate.dim(0); ++t)
    for (int32_t i = 0; i < op.width; ++i) {
      double g = load_element(row_at(args.gate, t), op.x, i), u = load_element(row_at(args.up, t), op.x, i);
      if (op.limit > 0) {
        g = std::min(g, double{op.limit});
        u = std::clamp(u, -double{op.limit}, double{op.limit});
      }
      const double scale = args.row_scale == nullptr ? 1.0 : double{args.row_scale[t]};
      store_element(row_at(args.out, t), op.out, i, static_cast<float>(activate(op.activation, g) * u * scale));
    }
}

constexpr GatedActivationVariant kVariants[] = {
    {"ref", [](const GatedActivation&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const GatedActivationVariant> gated_activation_ref() { return kVariants; }

}  // namespace gannet
