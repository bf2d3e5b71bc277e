#include "kernels/gated_activation.h"

#include "kernels/args_check.h"

namespace gannet {

void check_gated_activation(const GatedActivation& op, const GatedActivationArgs& args) {
  check_matrix(args.gate, args.gate.dim(0), op.width, op.x);
  check_matrix(args.up, args.gate.dim(0), op.width, op.x);
  check_matrix(args.out, args.gate.dim(0), op.width, op.out);
}

Planned<GatedActivation, GatedActivationArgs> plan(const GatedActivation& op, const Machine& machine) {
  GANNET_CHECK(op.width >= 0 && op.limit >= 0, "width {}", op.width);
  return choose<GatedActivation, GatedActivationArgs>(op, machine,
                                                      {gated_activation_cpu(), gated_activation_ref()}, gated_activation_cuda());
}

}  // namespace gannet
