#include "engine/scripted_runner.h"

#include <utility>

#include "base/check.h"
#include "engine/clock.h"

namespace gannet::engine {

ScriptedRunner::ScriptedRunner(const ScriptedOptions& options, Script script) : script_(std::move(script)) {
  info_.family = "scripted";
  info_.vocab = options.vocab;
  info_.block_tokens = options.block_tokens;
  info_.n_blocks = options.n_blocks;
  info_.n_slots = options.n_slots;
  info_.max_rows = options.max_rows;
  info_.max_context = options.max_context;
}

void ScriptedRunner::check(const SeqWork& seq) const {
  const auto n_rows = static_cast<int32_t>(seq.tokens.size()) + (seq.pending ? 1 : 0);
  const int32_t end = seq.first_pos + n_rows;
  GANNET_CHECK(n_rows > 0 && end <= info_.max_context, "{} rows up to position {}", n_rows, end);
  GANNET_CHECK(static_cast<int64_t>(seq.block_table.size()) * info_.block_tokens >= end, "{} blocks for {} positions",
               static_cast<long long>(seq.block_table.size()), end);
  GANNET_CHECK(seq.slot >= 0 && seq.slot < info_.n_slots, "slot {} of {}", seq.slot, info_.n_slots);
  for (const int32_t block : seq.block_table)
    GANNET_CHECK(block >= 0 && block < info_.n_blocks, "block {} of {}", block, info_.n_blocks);
}

SeqResult ScriptedRunner::sample(SampleState& state) const {
  SeqResult result;
  if (!wanted(state)) return result;
  ScriptedToken next = script_.token(state.prompt, state.n_generated);
  if (!next.error.empty()) {
    state.ended = true;
    result.error = std::move(next.error);
    return result;
  }
  note_sampled(state, next.token);
  result.tokens.push_back({.token = next.token});
  return result;
}

StepResult ScriptedRunner::run(const StepWork& work) {
  StepResult result;
  result.step = work.step;
  result.begin_us = now_us();
  if (script_.before_step) result.error = script_.before_step(work);
  for (const SeqWork& seq : work.seqs) {
    check(seq);
    if (!result.error.empty()) seq.state->ended = true;
    if (seq.samples) result.seqs.push_back(sample(*seq.state));
  }
  result.end_us = now_us();
  return result;
}

}  // namespace gannet::engine
