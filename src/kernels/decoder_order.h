// The order in which the rows of a step enter the decoder half of a causal encoder-decoder model: by falling last
// layer that needs them, so that every decoder layer runs a prefix.
//
// With end T of the row's sequence (Step::seq_end), window W and L layers, the last layer that row at position q
// must run in full is
//   L - 1                              for q >= T - 1
//   L - 1 - ceil((T - 1 - q) / (W - 1)) else        (W = 1: none)
// A row whose last layer is l runs l in full and writes the window row of l + 1. Levels below first_layer - 1 count
// as that one less: such rows do not enter the decoder at all.
//
//   order  i32 [T]  out: row indices by falling last layer; equal ones keep their order
//   count  i32 [n_layers - first_layer + 1], host: rows of level >= first_layer - 1, first_layer, .. n_layers - 1,
//   as
//          decoder_row_counts() finds them; the op checks them where it runs on the host
//
// Source  exact trimming of DeepSeek-V4.1: f_l = 1 + (W - 1)(L - 1 - l), a row at q runs layer l iff q >= T - f_l.
#pragma once

#include <span>
#include <vector>

#include "kernels/variant.h"

namespace gannet {

struct DecoderOrder {
  int32_t window = 0, first_layer = 0, n_layers = 0;
};

struct DecoderOrderArgs {
  const int32_t* row_pos = nullptr;
  const int32_t* row_seq = nullptr;
  const int32_t* seq_end = nullptr;
  int32_t n_rows = 0;
  std::span<const int32_t> count;
  int32_t* order = nullptr;
};

std::span<const Variant<DecoderOrder, DecoderOrderArgs>> decoder_order_ref();
Planned<DecoderOrder, DecoderOrderArgs> plan(const DecoderOrder& op, const Machine& machine);

// The last layer that a row at `pos` runs in full, as above, not less than first_layer - 2.
int32_t last_layer(const DecoderOrder& op, int32_t pos, int32_t end);

// Adds the counts of rows first_pos .. first_pos + n_rows - 1 to `count`, without looking at each row.
void add_decoder_row_counts(const DecoderOrder& op, int32_t first_pos, int32_t n_rows, int32_t end,
                            std::vector<int32_t>& count);

}  // namespace gannet
