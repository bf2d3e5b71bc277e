#include "kernels/row_gather.h"

namespace gannet {

int64_t row_gather_bytes(const RowGather& op, const RowGatherArgs& args) {
  const View& x = args.x;
  const View& out = args.out;
  GANNET_CHECK((x.rank == 2 || x.rank == 3) && out.rank == x.rank && out.dtype == x.dtype, "ranks {} and {}",
               x.rank, out.rank);
  int64_t width = 1;
  for (int i = x.rank - 1; i > 0; --i) {
    GANNET_CHECK(x.dim(i) == out.dim(i), "dimension {}: {} and {}", i, x.dim(i), out.dim(i));
    const bool packed = x.stride[static_cast<size_t>(i)] == width && out.stride[static_cast<size_t>(i)] == width;
    GANNET_CHECK(packed || x.dim(i) <= 1, "dimension {} is not packed", i);
    width *= x.dim(i);
  }
  const auto n = static_cast<int64_t>(args.index.size());
  GANNET_CHECK((op.scatter ? x : out).dim(0) == n, "{} rows, {} indices", (op.scatter ? x : out).dim(0), n);
  return width * dtype_bytes(x.dtype);
}

int64_t check_row_gather(const RowGather& op, const RowGatherArgs& args) {
  const int64_t bytes = row_gather_bytes(op, args), limit = (op.scatter ? args.out : args.x).dim(0);
  for (const int32_t i : args.index) GANNET_CHECK(i >= 0 && i < limit, "row {} of {}", i, limit);
  return bytes;
}

Planned<RowGather, RowGatherArgs> plan(const RowGather& op, const Machine& machine) {
  return choose<RowGather, RowGatherArgs>(op, machine, {row_gather_cpu(), row_gather_ref()}, row_gather_cuda());
}

}  // namespace gannet
