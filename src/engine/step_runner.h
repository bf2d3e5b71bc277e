// What the engine needs of whatever runs steps: a model on this machine, or a script in tests. A step comes in as plain
// data and goes out as sampled tokens, so the engine never sees logits.
//
// Steps run one at a time, in the order of their numbers. A step may be handed over before the one in front of it has
// run: the token that a row waits for (`pending`) is then the one that the earlier step samples for the same request.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "sample/params.h"
#include "sample/processors.h"
#include "sample/sampler.h"

namespace gannet::engine {

// What sampling needs to know of one request. Made by the engine; from the first step that names it until the last one
// has retired, everything but `cancelled` is the runner's.
struct SampleState {
  sample::SamplingParams params;
  std::vector<int32_t> prompt;
  std::vector<uint32_t> mask;  // one bit an id that may be sampled; empty: all
  sample::TokenCounts counts;  // of the prompt and of what was sampled
  int32_t n_generated = 0;     // sampled so far
  int32_t last_token = -1;     // the last of them
  bool ended = false;          // sampled a stop token, or failed: later rows of it need not run
  std::atomic<bool> cancelled{false};  // its text is not wanted any more; set by the engine at any time
};

// For runners: whether rows of the request need to run; and what follows from a token that was sampled for it.
bool wanted(const SampleState& state);
void note_sampled(SampleState& state, int32_t token);

// Rows of one sequence in one step: positions first_pos .. first_pos + tokens.size() + pending - 1.
struct SeqWork {
  SampleState* state = nullptr;
  int32_t slot = 0;                  // ring slot
  bool fresh = false;                // forget what the slot holds first
  std::vector<int32_t> block_table;  // KV blocks of the sequence, in order; covers all rows
  std::vector<int32_t> tokens;
  bool pending = false;  // one more row: its token is state->last_token once the step in front has run
  int32_t first_pos = 0;
  int32_t end = 0;       // declared end T of the prompt (Step::seq_end)
  bool samples = false;  // a token is sampled from the last row
};

struct StepWork {
  int64_t step = 0;  // rising by one
  std::vector<SeqWork> seqs;
};

struct SeqResult {
  std::vector<sample::Sampled> tokens;  // one; none where the request ended before, or failed
  std::string error;                    // why it failed; empty: it did not
};

struct StepResult {
  int64_t step = 0;
  std::vector<SeqResult> seqs;         // one for each SeqWork with `samples`, in order
  std::string error;                   // the step as a whole failed: nothing that it wrote is of use
  int64_t begin_us = 0, end_us = 0;    // steady clock, when it ran
};

// What the engine must know to plan for a runner. Constant.
struct RunnerInfo {
  std::string family;  // names the KV layout in cache keys
  int32_t vocab = 0;
  int32_t block_tokens = 16;
  int32_t n_blocks = 0, n_slots = 0;
  int32_t max_rows = 0;
  int32_t max_context = 0;
  bool has_rings = false;  // blocks alone are not enough to resume from
  int64_t kv_bytes = 0;    // reserved for blocks and slots
  int n_threads = 1;
};

// Owner: the thread that runs steps (engine/step_queue.h); info() is for any thread.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual const RunnerInfo& info() const = 0;
  // Runs the step to its end. Never throws: what goes wrong is in the result.
  virtual StepResult run(const StepWork& work) = 0;
};

}  // namespace gannet::engine
