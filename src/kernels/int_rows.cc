#include "kernels/int_rows.h"

#include "kernels/args_check.h"

namespace gannet {

IntRowsView int_rows_in(Arena& arena, int64_t n_rows, int32_t width) {
  const int64_t n_scales = n_rows * (width / kIntBlock);
  return {arena.array<int16_t>(n_rows * width), arena.array<float>(n_scales), arena.array<float>(n_scales), n_rows,
          width};
}

void check_int_rows(const IntRows& op, const IntRowsArgs& args) {
  check_matrix(args.x, args.out.n_rows, op.width, DType::f32);
  GANNET_CHECK(args.out.width == op.width, "width {}, asked {}", args.out.width, op.width);
}

Planned<IntRows, IntRowsArgs> plan(const IntRows& op, const Machine& machine) {
  GANNET_CHECK(op.width >= 0 && op.width % kIntBlock == 0, "{} channels in blocks of {}", op.width, kIntBlock);
  return choose<IntRows, IntRowsArgs>(op, machine, {int_rows_cpu(), int_rows_ref()});
}

}  // namespace gannet
