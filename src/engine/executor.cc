#include "engine/executor.h"

#include <algorithm>

#include "base/check.h"

namespace gannet::engine {

Result<std::unique_ptr<Executor>> Executor::create(Model& model, const ExecutorOptions& options) {
  GANNET_ASSIGN(auto store, kv::KvStore::create(model.kv_spec(), options.n_blocks, options.n_slots));
  return std::unique_ptr<Executor>(new Executor(model, options, std::move(store)));
}

Executor::Executor(Model& model, const ExecutorOptions& options, kv::KvStore store)
    : model_(model),
      options_(options),
      store_(std::move(store)),
      pool_(options.n_threads),
      arena_(model.workspace_bytes(options.max_rows, options.max_logit_rows, options.max_context)),
      logits_(static_cast<size_t>(options.max_logit_rows) * static_cast<size_t>(model.info().vocab)) {}

View Executor::run(std::span<const SeqChunk> chunks) {
  for (auto* array : {&row_seq_, &row_pos_, &row_token_, &logit_rows_, &seq_first_row_, &seq_first_pos_,
                      &seq_n_rows_, &seq_end_, &seq_slot_, &block_table_})
    array->clear();
  row_flags_.clear();

  Step step;
  std::vector<SeqRows> plan;
  for (const SeqChunk& chunk : chunks)
    step.max_blocks = std::max(step.max_blocks, static_cast<int32_t>(chunk.block_table.size()));
  for (const SeqChunk& chunk : chunks) {
    const auto n = static_cast<int32_t>(chunk.tokens.size());
    GANNET_CHECK(n > 0 && chunk.first_pos + n <= options_.max_context,
                 "{} rows from position {} in a context of {}", n, chunk.first_pos, options_.max_context);
    const auto seq = static_cast<int32_t>(seq_slot_.size());
    const auto first_row = static_cast<int32_t>(row_seq_.size());
    for (int32_t i = 0; i < n; ++i) {
      const bool wants_logits = i >= n - chunk.n_logits;
      if (wants_logits) logit_rows_.push_back(first_row + i);
      row_seq_.push_back(seq);
      row_pos_.push_back(chunk.first_pos + i);
      row_token_.push_back(chunk.tokens[static_cast<size_t>(i)]);
      row_flags_.push_back(wants_logits ? row_wants_logits : 0);
    }
    seq_first_row_.push_back(first_row);
    seq_first_pos_.push_back(chunk.first_pos);
    seq_n_rows_.push_back(n);
    seq_end_.push_back(chunk.end);
    seq_slot_.push_back(chunk.slot);
    block_table_.insert(block_table_.end(), chunk.block_table.begin(), chunk.block_table.end());
    block_table_.resize(block_table_.size() + static_cast<size_t>(step.max_blocks) - chunk.block_table.size(), -1);
    step.max_pos = std::max(step.max_pos, chunk.first_pos + n - 1);
    plan.push_back({chunk.first_pos, n, chunk.end, 1});
  }
  step.n_rows = static_cast<int32_t>(row_seq_.size());
  step.n_seqs = static_cast<int32_t>(seq_slot_.size());
  step.n_logit_rows = static_cast<int32_t>(logit_rows_.size());
  GANNET_CHECK(step.n_rows <= options_.max_rows && step.n_logit_rows <= options_.max_logit_rows,
               "step of {} rows, {} of them with logits", step.n_rows, step.n_logit_rows);
  step.row_seq = row_seq_.data();
  step.row_pos = row_pos_.data();
  step.row_token = row_token_.data();
  step.row_flags = row_flags_.data();
  step.seq_first_row = seq_first_row_.data();
  step.seq_first_pos = seq_first_pos_.data();
  step.seq_n_rows = seq_n_rows_.data();
  step.seq_end = seq_end_.data();
  step.seq_ring_slot = seq_slot_.data();
  step.block_table = block_table_.data();
  step.logit_rows = logit_rows_.data();
  const std::vector<int32_t> decoder_rows = model_.plan_rows(plan);
  step.decoder_rows = decoder_rows;

  const View logits(logits_.data(), DType::f32, {step.n_logit_rows, model_.info().vocab});
  Exec exec{pool_, arena_};
  const Arena::Scope scope(arena_);
  model_.forward(step, store_, logits, exec);
  return logits;
}

}  // namespace gannet::engine
