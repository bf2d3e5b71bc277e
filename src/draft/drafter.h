// What every source of drafts is to the engine. A round of speculation:
//
//   propose   the drafter guesses tokens that follow the anchor (the last committed token, not yet run)
//   verify    the model runs the anchor and the drafts as rows of one step, and keeps the drafts that it would have
//             sampled itself
//   observe   the drafter learns what was committed: the accepted drafts and one token of the model's own
//
// A draft never changes what is generated, only how fast: a drafter may be wrong or silent. Owner of a drafter: the
// engine thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sample/params.h"
#include "sample/processors.h"
#include "tensor/view.h"

namespace gannet::draft {

enum class SeqId : int64_t {};

// One sequence that wants drafts. Borrowed for the length of the call.
struct Anchor {
  SeqId seq{};
  int32_t max_drafts = 0;  // wanted at most; 0: none
  // For drafters that draw as the model will: how the request samples, and what penalties count. Both may be null
  // for those that do not. `counts` is as before on return.
  const sample::SamplingParams* sampling = nullptr;
  sample::TokenCounts* counts = nullptr;
  sample::TokenMask mask;
};

// Proposals for the positions behind an anchor, in order.
struct Draft {
  std::vector<int32_t> tokens;
  std::vector<float> confidence;  // of each: estimated chance in [0, 1] that it is accepted once all before it were
  std::vector<double> law;        // f64 [tokens, V]: what each was drawn from; empty: one-hot
};

// What a sequence gained since the last call. Borrowed.
struct Gain {
  SeqId seq{};
  std::span<const int32_t> tokens;  // committed tokens, the new anchor last
  int32_t n_drafted = 0;            // drafts that were verified in this round; 0: it was a plain step
  int32_t n_accepted = 0;
  // The model's hidden input to drafts, activation type [n, n_taps * C], for the rows that ran at positions
  // [taps_pos, taps_pos + n) and stay committed; empty where the drafter's wants_taps() is false.
  View taps;
  int32_t taps_pos = 0;
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // Drafts a round can have at most.
  virtual int32_t max_drafts() const = 0;
  virtual bool wants_taps() const { return false; }

  // A sequence begins with its prompt; ids must be new. What tenants share is the drafter's business; nothing
  // crosses from one tenant to another.
  virtual void begin(SeqId seq, std::string_view tenant, std::span<const int32_t> prompt) = 0;
  // One draft for each anchor, possibly empty, never longer than asked. Same state, same answer: nothing is kept
  // that a rejected draft would have to undo.
  virtual void propose(std::span<const Anchor> anchors, std::span<Draft> drafts) = 0;
  virtual void observe(std::span<const Gain> gains) = 0;
  // The sequence has ended. Unknown ids are ignored.
  virtual void forget(SeqId seq) = 0;

  virtual int64_t memory_bytes() const = 0;
};

}  // namespace gannet::draft
