#include "kernels/decoder_order.h"

#include <algorithm>

namespace gannet {

Planned<DecoderOrder, DecoderOrderArgs> plan(const DecoderOrder& op, const Machine& machine) {
  GANNET_CHECK(op.window >= 1 && op.first_layer >= 0 && op.first_layer < op.n_layers, "layers {} to {}, window {}",
               op.first_layer, op.n_layers, op.window);
  return choose<DecoderOrder, DecoderOrderArgs>(op, machine, {decoder_order_ref()});
}

int32_t last_layer(const DecoderOrder& op, int32_t pos, int32_t end) {
  const int32_t none = op.first_layer - 2, before_end = end - 1 - pos;
  if (before_end <= 0) return op.n_layers - 1;
  if (op.window == 1) return none;
  const int32_t short_of = (before_end + op.window - 2) / (op.window - 1);
  return std::max(none, op.n_layers - 1 - short_of);
}

void add_decoder_row_counts(const DecoderOrder& op, int32_t first_pos, int32_t n_rows, int32_t end,
                            std::vector<int32_t>& count) {
  count.resize(static_cast<size_t>(op.n_layers - op.first_layer) + 1, 0);
  for (int32_t level = op.first_layer - 1; level < op.n_layers; ++level) {
    const int64_t reach = 1 + int64_t{op.window - 1} * (op.n_layers - 1 - level);  // f of this layer
    const int64_t begin = std::clamp<int64_t>(end - reach, first_pos, int64_t{first_pos} + n_rows);
    count[static_cast<size_t>(level - op.first_layer) + 1] += static_cast<int32_t>(first_pos + n_rows - begin);
  }
}

}  // namespace gannet
