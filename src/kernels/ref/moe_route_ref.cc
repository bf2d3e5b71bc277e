#include <algorithm>
#include <cmath>

#include "kernels/moe_route.h"
#include "kernels/row_io.h"
#include "kernels/tasks.h"

namespace gannet {
namespace {

// Logits to scores, in place.
void score_row(const MoeRoute& op, float* z) {
  double top = -HUGE_VAL, sum = 0;
  if (op.score == RouteScore::softmax) {
    for (int32_t e = 0; e < op.experts; ++e) top = std::max(top, double{z[e]} / double{op.temperature});
    for (int32_t e = 0; e < op.experts; ++e) sum += std::exp(double{z[e]} / double{op.temperature} - top);
  }
  for (int32_t e = 0; e < op.experts; ++e) {
    const double x = double{z[e]} / double{op.temperature};
    switch (op.score) {
      case RouteScore::sqrt_softplus:
        z[e] = static_cast<float>(std::sqrt(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)))));
        break;
      case RouteScore::sigmoid:
        z[e] = static_cast<float>(1 / (1 + std::exp(-x)));
        break;
      case RouteScore::softmax:
        z[e] = static_cast<float>(std::exp(x - top) / sum);
        break;
    }
  }
}

void run(const MoeRoute& op, const MoeRouteArgs& args, Exec& exec) {
  const Arena::Scope scope(exec.arena);
  const int64_t E = op.experts;
  float* all_scores = exec.arena.array<float>(exec.pool.size() * 2 * E);
  for_each_task(exec, args.logits.dim(0), [&](int64_t t, int thread) {
    float* score = all_scores + thread * 2 * E;
    float* biased = score + E;
    read_row(args.logits, t, 0, E, score);
    score_row(op, score);
    const bool marked = args.row_flags != nullptr && (args.row_flags[t] & args.flag) != 0;
    const float* bias = marked && args.bias_marked != nullptr ? args.bias_marked : args.bias;
    for (int64_t e = 0; e < E; ++e) biased[e] = bias == nullptr ? score[e] : score[e] + bias[e];
    int32_t* expert = args.expert + t * op.chosen;
    float* weight = args.weight + t * op.chosen;
    double sum = 0;
    for (int32_t k = 0; k < op.chosen; ++k) {
      expert[k] = static_cast<int32_t>(std::max_element(biased, biased + E) - biased);  // the first of equals
      biased[expert[k]] = -HUGE_VALF;
      sum += double{weight[k] = score[expert[k]]};
    }
    for (int32_t k = 0; k < op.chosen; ++k) {
      const double share = op.normalise && op.chosen > 1 ? double{weight[k]} / (sum + 1e-20) : double{weight[k]};
      weight[k] = static_cast<float>(share * double{op.scale});
    }
  });
}

constexpr MoeRouteVariant kVariants[] = {{"ref", [](const MoeRoute&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const MoeRouteVariant> moe_route_ref() { return kVariants; }

}  // namespace gannet
