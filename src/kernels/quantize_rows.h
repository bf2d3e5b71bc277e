// Values of rows as a cache or a low-precision product would see them: each row goes through the codes of a
// RowFormat and back ("fake quantisation").
//
//   x    f32 or bf16 [T, n]   n = groups * width; every group of `width` channels is a row of its own
//   out  f32 or bf16 [T, n]   out; may be x itself
//
// Error    exact (row_codec.h says the rule). bf16 holds every decoded value.
// Refuses  at plan time: a width that is not a multiple of the format's block.
// Source   Q_act (fp8_ue8m0), Q_idx (fp4_ue8m0) of the released DeepSeek-V4.1.
#pragma once

#include "kernels/kv_view.h"
#include "kernels/variant.h"

namespace gannet {

struct QuantizeRows {
  RowFormat format = RowFormat::fp8_ue8m0;
  int32_t width = 0, groups = 1;
  DType x = DType::bf16, out = DType::bf16;
};

struct QuantizeRowsArgs {
  View x, out;
};

using QuantizeRowsVariant = Variant<QuantizeRows, QuantizeRowsArgs>;
std::span<const QuantizeRowsVariant> quantize_rows_ref();
Planned<QuantizeRows, QuantizeRowsArgs> plan(const QuantizeRows& op, const Machine& machine);

}  // namespace gannet
