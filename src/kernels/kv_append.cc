#include "kernels/kv_append.h"

#include "kernels/args_check.h"

namespace gannet {

void check_kv_append(const KvAppend& op, const KvAppendArgs& args) {
  check_matrix(args.x, args.x.dim(0), op.width, op.x);
  GANNET_CHECK(args.plane.width == op.width && args.plane.format == op.format, "plane of width {}, format {}",
               args.plane.width, static_cast<int>(args.plane.format));
}

Planned<KvAppend, KvAppendArgs> plan(const KvAppend& op, const Machine& machine) {
  GANNET_CHECK(op.format == RowFormat::f32 || op.format == RowFormat::f16 || op.format == RowFormat::bf16,
               "format {}", static_cast<int>(op.format));
  return choose<KvAppend, KvAppendArgs>(op, machine, {kv_append_cpu(), kv_append_ref()}, kv_append_cuda());
}

}  // namespace gannet
