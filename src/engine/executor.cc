#include "engine/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "runtime/device.h"

namespace gannet::engine {
namespace {

int32_t max_blocks(const Model& model, const ExecutorOptions& options) {
  const int32_t tokens = model.kv_spec().block_tokens;
  return tokens == 0 ? 0 : (options.max_context + tokens - 1) / tokens;
}

// Upper bound of what send() packs: arrays of rows and of sequences, each on 16 bytes.
int64_t array_bytes(const Model& model, const ExecutorOptions& options) {
  const int64_t rows = options.max_rows, logits = options.max_logit_rows;
  return rows * (3 * 4 + 1) + logits * 4 + rows * (5 + int64_t{max_blocks(model, options)}) * 4 + 16 * 16;
}

int64_t workspace(const Model& model, const ExecutorOptions& options) {
  return model.workspace_bytes(options.max_rows, options.max_logit_rows, options.max_context);
}

}  // namespace

Result<std::unique_ptr<Executor>> Executor::create(Model& model, const ExecutorOptions& options) {
  GANNET_ASSIGN(auto store,
                kv::KvStore::create(model.kv_spec(), options.n_blocks, options.n_slots, options.device));
  if (options.device != nullptr) {
    const int64_t need = workspace(model, options) + array_bytes(model, options) +
                         int64_t{options.max_logit_rows} * model.info().vocab * 4 + 1024;
    if (need > options.device->left_bytes())
      return Error{
          Errc::no_capacity,
          fmt::format("steps of {} rows need {} bytes of device memory beside weights and KV cache, {} are left",
                      options.max_rows, need, options.device->left_bytes())};
  }
  return std::unique_ptr<Executor>(new Executor(model, options, std::move(store)));
}

Executor::Executor(Model& model, const ExecutorOptions& options, kv::KvStore store)
    : model_(model),
      options_(options),
      store_(std::move(store)),
      pool_(options.device != nullptr ? 1 : options.n_threads),
      arena_(options.device != nullptr
                 ? Arena(options.device->allocate(workspace(model, options)), workspace(model, options))
                 : Arena(workspace(model, options))),
      logits_(static_cast<size_t>(options.max_logit_rows) * static_cast<size_t>(model.info().vocab)) {
  if (options.device == nullptr) return;
  device_arrays_bytes_ = array_bytes(model, options);
  device_arrays_ = options.device->allocate(device_arrays_bytes_);
  device_logits_ = reinterpret_cast<float*>(options.device->allocate(static_cast<int64_t>(logits_.size()) * 4));
}

void Executor::fill_arrays(std::span<const SeqChunk> chunks, Step& step, std::vector<SeqRows>& plan) {
  for (auto* array : {&row_seq_, &row_pos_, &row_token_, &logit_rows_, &seq_first_row_, &seq_first_pos_,
                      &seq_n_rows_, &seq_end_, &seq_slot_, &block_table_})
    array->clear();
  row_flags_.clear();
  if (options_.device != nullptr) step.max_blocks = max_blocks(model_, options_);  // the same in every step
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
}

// Packs the arrays, uploads them in one piece and points the step to them. Offsets depend on the numbers of rows,
// sequences and logits alone.
void Executor::send(Step& step) {
  staged_.clear();
  const auto put = [&]<class T>(const std::vector<T>& values) {
    staged_.resize((staged_.size() + 15) / 16 * 16);
    const size_t at = staged_.size();
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    staged_.insert(staged_.end(), bytes, bytes + values.size() * sizeof(T));
    return reinterpret_cast<const T*>(device_arrays_ + at);
  };
  step.row_seq = put(row_seq_);
  step.row_pos = put(row_pos_);
  step.row_token = put(row_token_);
  step.row_flags = put(row_flags_);
  step.seq_first_row = put(seq_first_row_);
  step.seq_first_pos = put(seq_first_pos_);
  step.seq_n_rows = put(seq_n_rows_);
  step.seq_end = put(seq_end_);
  step.seq_ring_slot = put(seq_slot_);
  step.logit_rows = put(logit_rows_);
  step.block_table = put(block_table_);
  const auto bytes = static_cast<int64_t>(staged_.size());
  GANNET_CHECK(bytes <= device_arrays_bytes_, "{} bytes of arrays, room for {}", bytes, device_arrays_bytes_);
  options_.device->upload(device_arrays_, staged_.data(), bytes);
}

void Executor::start_on_device(const Step& step, View logits) {
  Exec exec{pool_, arena_, options_.device->stream()};
  const auto launch = [&] {
    const Arena::Scope scope(arena_);
    model_.forward(step, store_, logits, exec);
  };
  const bool decode = step.n_rows == step.n_seqs && step.n_logit_rows == step.n_rows;
  if (!options_.graphs || !decode) return launch();
  DecodeGraph& graph = graphs_[step.n_rows];
  if (!graph.warm) {
    graph.warm = true;
    return launch();
  }
  if (graph.graph == nullptr) graph.graph = options_.device->capture(launch);
  graph.graph->replay();
}

View Executor::run(std::span<const SeqChunk> chunks) {
  Step step;
  std::vector<SeqRows> plan;
  fill_arrays(chunks, step, plan);
  const std::vector<int32_t> decoder_rows = model_.plan_rows(plan);
  step.decoder_rows = decoder_rows;
  const View logits(logits_.data(), DType::f32, {step.n_logit_rows, model_.info().vocab});
  if (options_.device != nullptr) {
    send(step);
    const View on_device(device_logits_, DType::f32, {step.n_logit_rows, model_.info().vocab});
    start_on_device(step, on_device);
    options_.device->download(logits.data, on_device.data,
                              logits.bytes());  // waits: the step is done, or its fault shows
    return logits;
  }
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
  Exec exec{pool_, arena_};
  const Arena::Scope scope(arena_);
  model_.forward(step, store_, logits, exec);
  return logits;
}

}  // namespace gannet::engine
