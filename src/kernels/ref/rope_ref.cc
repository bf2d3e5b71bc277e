#include <cmath>

#include "kernels/args_check.h"
#include "kernels/rope.h"

namespace gannet {
namespace {

void run(const Rope& op, const RopeArgs& args, Exec&) {
  check_rope(op, args);
  const int32_t n_pairs = op.rotary / 2;
  for (int64_t t = 0; t < args.x.dim(0); ++t)
    for (int32_t i = 0; i < n_pairs; ++i) {
      float cosine = 0, sine = 0;
      if (args.table != nullptr) {
        cosine = args.table[(t * n_pairs + i) * 2];
        sine = args.table[(t * n_pairs + i) * 2 + 1];
      } else {
        const double angle = static_cast<float>(args.pos[t]) * args.frequency[i];
        cosine = static_cast<float>(std::cos(angle));
        sine = static_cast<float>(std::sin(angle));
      }
      if (op.inverse) sine = -sine;
      const int32_t first = op.begin + (op.interleaved ? 2 * i : i),
                    second = first + (op.interleaved ? 1 : n_pairs);
      for (int32_t h = 0; h < op.heads; ++h) {
        std::byte* head = head_at(args.x, t, h);
        const float a = load_element(head, op.x, first), b = load_element(head, op.x, second);
        store_element(head, op.x, first, a * cosine - b * sine);
        store_element(head, op.x, second, a * sine + b * cosine);
      }
    }
}

constexpr RopeVariant kVariants[] = {{"ref", [](const Rope&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const RopeVariant> rope_ref() { return kVariants; }

}  // namespace gannet
