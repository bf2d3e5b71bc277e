#include "kernels/add.h"

#include "kernels/args_check.h"

namespace gannet {

void check_add(const Add& op, const AddArgs& args) {
  check_matrix(args.a, args.a.dim(0), op.width, op.a);
  check_matrix(args.b, args.a.dim(0), op.width, op.b);
  check_matrix(args.out, args.a.dim(0), op.width, op.out);
}

Planned<Add, AddArgs> plan(const Add& op, const Machine& machine) {
  GANNET_CHECK(op.width >= 0, "width {}", op.width);
  return choose<Add, AddArgs>(op, machine, {add_cpu(), add_ref()}, add_cuda());
}

}  // namespace gannet
