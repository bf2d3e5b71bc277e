#include "kernels/linear.h"

#include "kernels/args_check.h"

namespace gannet {

void check_linear(const Linear& op, const LinearArgs& args) {
  check_matrix(args.x, args.x.dim(0), int64_t{op.groups} * op.in, op.x);
  check_matrix(args.y, args.x.dim(0), int64_t{op.groups} * op.out, op.y);
  GANNET_CHECK(
      args.weight.format == op.format && args.weight.out == int64_t{op.groups} * op.out && args.weight.in == op.in,
      "weight [{}, {}] of format {}", args.weight.out, args.weight.in, static_cast<int>(args.weight.format));
}

Planned<Linear, LinearArgs> plan(const Linear& op, const Machine& machine) {
  GANNET_CHECK(op.out >= 0 && op.in >= 0 && op.groups > 0 && op.format != WeightFormat::none,
               "[{}, {}] x {} groups", op.out, op.in, op.groups);
  GANNET_CHECK(op.in % weight_format_info(op.format).block_elements == 0, "{} columns cut a block of {}", op.in,
               weight_format_info(op.format).block_elements);
  GANNET_CHECK((op.x == DType::f32 || op.x == DType::bf16) && (op.y == DType::f32 || op.y == DType::bf16));
  return choose<Linear, LinearArgs>(op, machine, {linear_cpu(), linear_ref()}, linear_cuda());
}

}  // namespace gannet
