// Writes one cache row for each row of a step into a plane: position p of sequence s becomes row p of the sequence.
//
//   x        f32 or bf16 [T, W]    rows may be strided
//   row_seq  i32 [T]               index into the plane's block table
//   row_pos  i32 [T]
//   plane    PagedRows, width W, format f32, f16 or bf16; its table has the block of every position written
//
// Rounds to nearest even; f16 overflows to infinity as IEEE says. Two rows never share sequence and position.
#pragma once

#include "kernels/kv_view.h"
#include "kernels/variant.h"

namespace gannet {

struct KvAppend {
  int32_t width = 0;
  DType x = DType::f32;
  RowFormat format = RowFormat::f16;
};

struct KvAppendArgs {
  View x;
  const int32_t* row_seq = nullptr;
  const int32_t* row_pos = nullptr;
  PagedRows plane;
};

// Aborts unless the arguments have the shapes and types of `op`. Every variant begins with it.
void check_kv_append(const KvAppend& op, const KvAppendArgs& args);

using KvAppendVariant = Variant<KvAppend, KvAppendArgs>;
std::span<const KvAppendVariant> kv_append_cpu();
std::span<const KvAppendVariant> kv_append_cuda();
std::span<const KvAppendVariant> kv_append_ref();
Planned<KvAppend, KvAppendArgs> plan(const KvAppend& op, const Machine& machine);

}  // namespace gannet
