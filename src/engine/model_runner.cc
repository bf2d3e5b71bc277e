#include "engine/model_runner.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/clock.h"

namespace gannet::engine {

Result<std::unique_ptr<ModelRunner>> ModelRunner::create(Model& model, const Machine& machine,
                                                         const ExecutorOptions& options) {
  GANNET_ASSIGN(auto executor, Executor::create(model, options));
  return std::unique_ptr<ModelRunner>(new ModelRunner(model, machine, std::move(executor)));
}

ModelRunner::ModelRunner(Model& model, const Machine& machine, std::unique_ptr<Executor> executor)
    : executor_(std::move(executor)), sampler_(model.info().vocab, machine) {
  const ExecutorOptions& options = executor_->options();
  const kv::KvLayout& layout = executor_->store().layout();
  info_.family = model.info().family;
  info_.vocab = model.info().vocab;
  info_.block_tokens = model.kv_spec().block_tokens;
  info_.n_blocks = options.n_blocks;
  info_.n_slots = options.n_slots;
  info_.max_rows = options.max_rows;
  info_.max_context = options.max_context;
  info_.has_rings = !model.kv_spec().rings.empty();
  info_.kv_bytes = layout.block_bytes * options.n_blocks + layout.slot_bytes * options.n_slots;
  info_.n_threads = executor_->n_threads();
}

SeqResult ModelRunner::sample(SampleState& state, View logits) {
  SeqResult result;
  const std::span<const float> row(logits.as<float>(), static_cast<size_t>(logits.dim(0)));
  auto sampled = sampler_.sample(row, state.params,
                                 {.counts = &state.counts,
                                  .n_generated = state.n_generated,
                                  .token_index = static_cast<uint32_t>(state.prompt.size()) +
                                                 static_cast<uint32_t>(state.n_generated),
                                  .mask = state.mask});
  if (!sampled) {
    state.ended = true;
    result.error = sampled.error().message;
    return result;
  }
  note_sampled(state, sampled->token);
  result.tokens.push_back(std::move(*sampled));
  return result;
}

StepResult ModelRunner::run(const StepWork& work) {
  StepResult result;
  result.step = work.step;
  result.begin_us = now_us();
  std::vector<std::vector<int32_t>> tokens(work.seqs.size());
  std::vector<bool> runs(work.seqs.size());
  std::vector<SeqChunk> chunks;
  for (size_t i = 0; i < work.seqs.size(); ++i) {
    const SeqWork& seq = work.seqs[i];
    runs[i] = wanted(*seq.state);
    if (!runs[i]) continue;
    if (seq.fresh) executor_->reset_slot(seq.slot);
    tokens[i] = seq.tokens;
    if (seq.pending) tokens[i].push_back(seq.state->last_token);
    chunks.push_back({.slot = seq.slot,
                      .block_table = seq.block_table,
                      .tokens = tokens[i],
                      .first_pos = seq.first_pos,
                      .end = seq.end,
                      .n_logits = seq.samples ? 1 : 0});
  }
  View logits;
  try {
    if (!chunks.empty()) logits = executor_->run(chunks);
  } catch (const std::exception& failure) {
    result.error = failure.what();
  }
  int64_t row = 0;
  for (size_t i = 0; i < work.seqs.size(); ++i) {
    SampleState& state = *work.seqs[i].state;
    if (!result.error.empty()) state.ended = true;
    if (!work.seqs[i].samples) continue;
    const bool sampled = result.error.empty() && runs[i];
    result.seqs.push_back(sampled ? sample(state, logits.row(row++)) : SeqResult{});
  }
  result.end_us = now_us();
  return result;
}

}  // namespace gannet::engine
