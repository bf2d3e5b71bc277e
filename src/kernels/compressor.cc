#include "kernels/compressor.h"

#include "kernels/row_io.h"

namespace gannet {

Planned<GroupStart, GroupStartArgs> plan(const GroupStart& op, const Machine& machine) {
  GANNET_CHECK(op.ratio >= 1, "ratio {}", op.ratio);
  return choose<GroupStart, GroupStartArgs>(op, machine, {group_start_ref()});
}
Planned<PoolRows, PoolRowsArgs> plan(const PoolRows& op, const Machine& machine) {
  GANNET_CHECK(op.ratio >= 2 && op.width > 0 && is_activation(op.out), "ratio {}, width {}", op.ratio, op.width);
  return choose<PoolRows, PoolRowsArgs>(op, machine, {pool_rows_ref()});
}
Planned<AppendRows, AppendRowsArgs> plan(const AppendRows& op, const Machine& machine) {
  GANNET_CHECK(op.ratio >= 1 && op.width > 0 && is_activation(op.x), "ratio {}, width {}", op.ratio, op.width);
  return choose<AppendRows, AppendRowsArgs>(op, machine, {append_rows_ref()});
}

}  // namespace gannet
