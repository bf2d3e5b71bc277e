#include "kernels/rope.h"

#include <cmath>

#include "kernels/args_check.h"

namespace gannet {

void rope_table(const int32_t* pos, int32_t n_rows, const float* frequency, int32_t n_pairs, float* table,
                Exec& exec) {
  if (exec.stream != nullptr) return rope_table_cuda(pos, n_rows, frequency, n_pairs, table, exec);
  exec.pool.parallel_for(n_rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t i = 0; i < n_pairs; ++i) {
        const float angle = static_cast<float>(pos[t]) * frequency[i];
        double sine = 0, cosine = 0;
        ::sincos(angle, &sine, &cosine);
        table[(t * n_pairs + i) * 2] = static_cast<float>(cosine);
        table[(t * n_pairs + i) * 2 + 1] = static_cast<float>(sine);
      }
  });
}

void check_rope(const Rope& op, const RopeArgs& args) {
  check_heads(args.x, args.x.dim(0), op.heads, op.head_dim, op.x);
  GANNET_CHECK(args.table != nullptr || (args.pos != nullptr && args.frequency != nullptr) ||
               args.x.dim(0) * op.rotary == 0);
}

Planned<Rope, RopeArgs> plan(const Rope& op, const Machine& machine) {
  GANNET_CHECK(op.rotary >= 0 && op.rotary % 2 == 0 && op.begin >= 0 && op.begin + op.rotary <= op.head_dim,
               "channels {} + {} of {}", op.begin, op.rotary, op.head_dim);
  return choose<Rope, RopeArgs>(op, machine, {rope_cpu(), rope_ref()}, rope_cuda());
}

}  // namespace gannet
