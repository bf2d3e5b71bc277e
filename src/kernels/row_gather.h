// Moves rows by an index list: compaction and its undoing. Bytes are copied, whatever the type.
//
//   gather:   out[i] = x[index[i]]   x any [n_x, C], out any [T, C]; index i32 [T], repeats allowed
//   scatter:  out[index[i]] = x[i]   x any [T, C], out any [n_out, C]; index distinct; other rows of out stay
//   x and out have the same type, do not overlap; rows may be strided. Rank 2 or 3 (then [rows, a, b], the inner
//   two dimensions contiguous).
//   T = index.size()
//
// Fails  an index out of range is a bug of the caller and aborts.
#pragma once

#include "kernels/variant.h"

namespace gannet {

struct RowGather {
  bool scatter = false;
};

struct RowGatherArgs {
  View x;
  std::span<const int32_t> index;
  View out;
};

// Aborts unless the views fit each other; bytes of a row. A device's variants cannot look at the indices.
int64_t row_gather_bytes(const RowGather& op, const RowGatherArgs& args);
// The same and every index. Every variant on the CPU begins with it.
int64_t check_row_gather(const RowGather& op, const RowGatherArgs& args);

using RowGatherVariant = Variant<RowGather, RowGatherArgs>;
std::span<const RowGatherVariant> row_gather_cpu();
std::span<const RowGatherVariant> row_gather_cuda();
std::span<const RowGatherVariant> row_gather_ref();
Planned<RowGather, RowGatherArgs> plan(const RowGather& op, const Machine& machine);

}  // namespace gannet
