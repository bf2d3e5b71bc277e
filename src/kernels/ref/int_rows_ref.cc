#include <cmath>
#include <limits>

#include "kernels/args_check.h"
#include "kernels/int_rows.h"

namespace gannet {
namespace {

void block(const float* x, int16_t* q, float& scale, float& shift) {
  float most = 0;
  bool finite = true;
  for (int i = 0; i < kIntBlock; ++i) {
    finite = finite && std::isfinite(x[i]);
    most = std::max(most, std::fabs(x[i]));
  }
  int32_t sum = 0;
  if (!finite || most < kIntLeast) {
    for (int i = 0; i < kIntBlock; ++i) q[i] = 0;
    scale = shift = finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    return;
  }
  const float inverse = static_cast<float>(kIntMost) / most;
  for (int i = 0; i < kIntBlock; ++i) {
    q[i] = static_cast<int16_t>(std::nearbyintf(x[i] * inverse));
    sum += q[i];
  }
  scale = most / static_cast<float>(kIntMost);
  shift = scale * static_cast<float>(sum);
}

void run(const IntRows& op, const IntRowsArgs& args, Exec& exec) {
  check_int_rows(op, args);
  const int64_t n_blocks = op.width / kIntBlock;
  exec.pool.parallel_for(args.out.n_rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t b = 0; b < n_blocks; ++b)
        block(reinterpret_cast<const float*>(row_at(args.x, t)) + b * kIntBlock,
              args.out.q + t * op.width + b * kIntBlock, args.out.scale[t * n_blocks + b],
              args.out.shift[t * n_blocks + b]);
  });
}

constexpr IntRowsVariant kVariants[] = {{"ref", [](const IntRows&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const IntRowsVariant> int_rows_ref() { return kVariants; }

}  // namespace gannet
