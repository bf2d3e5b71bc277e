#include "kernels/args_check.h"
#include "kernels/rms_norm.h"

namespace gannet {
namespace {

void norm_row(const RmsNorm& op, const float* weight, const std::byte* x, std::byte* out) {
  double squares = 0;
  for (int32_t i = 0; i < op.width; ++i) {
    const double v = load_element(x, op.x, i);
    squares += v * v;
  }
  const double factor = 1 / std::sqrt(squares / op.width + double{op.eps});
  for (int32_t i = 0; i < op.width; ++i) {
    const double w = weight == nullptr ? 1.0 : double{weight[i]} + double{op.weight_offset};
    store_element(out, op.out, i, static_cast<float>(w * factor * double{load_element(x, op.x, i)}));
  }
}

void run(const RmsNorm& op, const RmsNormArgs& args, Exec&) {
  check_rms_norm(op, args);
  const int64_t heads = args.x.rank == 3 ? args.x.dim(1) : 1;
  for (int64_t t = 0; t < args.x.dim(0); ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const bool split = args.x.rank == 3;
      norm_row(op, args.weight, split ? head_at(args.x, t, h) : row_at(args.x, t),
               split ? head_at(args.out, t, h) : row_at(args.out, t));
    }
}

constexpr RmsNormVariant kVariants[] = {{"ref", [](const RmsNorm&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const RmsNormVariant> rms_norm_ref() { return kVariants; }

}  // namespace gannet
