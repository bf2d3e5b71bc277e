#include "kernels/rms_norm.h"

#include "kernels/args_check.h"

namespace gannet {

void check_rms_norm(const RmsNorm& op, const RmsNormArgs& args) {
  if (args.x.rank == 3) {
    check_heads(args.x, args.x.dim(0), args.x.dim(1), op.width, op.x);
    check_heads(args.out, args.x.dim(0), args.x.dim(1), op.width, op.out);
  } else {
    check_matrix(args.x, args.x.dim(0), op.width, op.x);
    check_matrix(args.out, args.x.dim(0), op.width, op.out);
  }
}

Planned<RmsNorm, RmsNormArgs> plan(const RmsNorm& op, const Machine& machine) {
  GANNET_CHECK(op.width > 0 && op.eps >= 0, "width {}", op.width);
  return choose<RmsNorm, RmsNormArgs>(op, machine, {rms_norm_cpu(), rms_norm_ref()}, rms_norm_cuda());
}

}  // namespace gannet
