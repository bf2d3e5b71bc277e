// One step of a model: rows. A row is one token of one sequence at one position; prefill chunks, decode steps,
// draft verification and replay are all rows and run the same code.
//
// Everything marked [device] is memory of the device that runs the model. Host code of a model reads only the
// counts and upper bounds: never a position, token or length. So an asynchronous step can be launched before they
// are known.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace gannet {

enum RowFlags : uint8_t {
  row_is_image = 1,  // a position of an image span, delimiters included
  row_wants_logits = 2,
  row_wants_taps = 4,  // the draft model's input is wanted for this row
};

struct Step {
  int32_t n_rows = 0, n_seqs = 0;

  // Rows. Those of one sequence are consecutive, in rising position.
  const int32_t* row_seq = nullptr;    // [device, n_rows] index into the per-sequence arrays
  const int32_t* row_pos = nullptr;    // [device, n_rows] absolute position, from 0
  const int32_t* row_token = nullptr;  // [device, n_rows]
  const uint8_t* row_flags = nullptr;  // [device, n_rows] RowFlags
  const int32_t* row_embed = nullptr;  // [device, n_rows] row of `embeds` that replaces the token embedding, or -1;
                                       // nullptr: no row has one
  View embeds;                         // [device] f32 [n_embeds, C]

  // Sequences of this step.
  const int32_t* seq_first_row = nullptr;  // [device, n_seqs]
  const int32_t* seq_first_pos = nullptr;  // [device, n_seqs] position of its first row
  const int32_t* seq_n_rows = nullptr;     // [device, n_seqs]
  const int32_t* seq_end = nullptr;  // [device, n_seqs] declared end T: positions >= T - k get the last k logits
                                     // exactly; rows at or beyond T are decode rows and run everything
  const int32_t* seq_ring_slot = nullptr;  // [device, n_seqs] slot in the ring slab
  const int32_t* block_table = nullptr;    // [device, n_seqs, max_blocks]
  int32_t max_blocks = 0;

  // Rows that want logits, in order: row indices. The model writes one logit row for each.
  const int32_t* logit_rows = nullptr;  // [device, n_logit_rows]
  int32_t n_logit_rows = 0;

  // Upper bounds the host knows.
  int32_t max_pos = 0;  // no row has a larger position
  // Causal encoder-decoder models: rows that must run layer l in full, for each decoder layer; falls with l.
  // Computed by the model's plan_rows() from positions and ends. Empty: every row runs every layer.
  std::span<const int32_t>
      decoder_rows;  // [host] n_run[l - first decoder layer], preceded by the window-only count
};

}  // namespace gannet
