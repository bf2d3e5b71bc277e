#include "kernels/quantize_rows.h"

#include "kernels/row_io.h"

namespace gannet {

Planned<QuantizeRows, QuantizeRowsArgs> plan(const QuantizeRows& op, const Machine& machine) {
  const int32_t block = op.format == RowFormat::fp4_e4m3 ? 16 : 32;
  GANNET_CHECK(op.width % block == 0, "{} channels in blocks of {}", op.width, block);
  GANNET_CHECK(is_activation(op.x) && is_activation(op.out), "activations are f32 or bf16");
  return choose<QuantizeRows, QuantizeRowsArgs>(op, machine, {quantize_rows_ref()});
}

}  // namespace gannet
