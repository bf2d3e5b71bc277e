#include "engine/engine.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace gannet::engine {
namespace {

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(Model& model, const Machine& machine, const EngineOptions& options,
                                               std::string weights_id) {
  const kv::KvSpec& spec = model.kv_spec();
  const int64_t blocks_per_seq = (int64_t{options.max_context} + spec.block_tokens - 1) / spec.block_tokens;
  const int64_t block_bytes = kv::KvLayout(spec).block_bytes;
  int64_t n_blocks = blocks_per_seq * options.max_seqs;
  if (options.kv_bytes > 0) n_blocks = options.kv_bytes / std::max<int64_t>(block_bytes, 1);

  ExecutorOptions executor_options;
  executor_options.n_blocks = static_cast<int32_t>(std::min<int64_t>(n_blocks, INT32_MAX));
  executor_options.n_slots = options.max_seqs;
  executor_options.max_rows = options.max_rows;
  executor_options.max_logit_rows = options.max_seqs;
  executor_options.max_context = options.max_context;
  executor_options.n_threads = options.n_threads;
  executor_options.device = machine.device;
  GANNET_ASSIGN(auto executor, Executor::create(model, executor_options));

  sched::SchedulerOptions scheduler;
  scheduler.max_rows = options.max_rows;
  scheduler.max_seqs = options.max_seqs;
  scheduler.max_context = options.max_context;
  scheduler.block_tokens = spec.block_tokens;
  scheduler.max_steps_ahead = 0;
  scheduler.prefix_hits = spec.rings.empty();  // with rings, blocks alone are not enough to resume from
  scheduler.policy = options.policy;
  return std::unique_ptr<Engine>(
      new Engine(model, machine, options, std::move(executor), std::move(weights_id), scheduler));
}

Engine::Engine(Model& model, const Machine& machine, const EngineOptions& options,
               std::unique_ptr<Executor> executor, std::string weights_id, const sched::SchedulerOptions& scheduler)
    : model_(model),
      options_(options),
      executor_(std::move(executor)),
      pool_(executor_->options().n_blocks),
      index_(pool_),
      scheduler_(scheduler, pool_, index_),
      sampler_(model.info().vocab, machine),
      root_(kv::root_key({.weights = std::move(weights_id), .layout = model.info().family})) {}

Result<RequestId> Engine::submit(GenerateRequest request) {
  GANNET_TRY(sample::validate(request.sampling, model_.info().vocab));
  for (const int32_t token : request.prompt)
    if (token < 0 || token >= model_.info().vocab)
      return Error{Errc::bad_request, "the prompt has token id " + std::to_string(token) +
                                          ", the vocabulary ends at " + std::to_string(model_.info().vocab - 1)};
  const RequestId id{next_id_};
  Running running;
  running.n_prompt = static_cast<int32_t>(request.prompt.size());
  running.max_tokens = std::min(request.max_tokens, options_.max_context - running.n_prompt);
  running.counts.add_prompt(request.prompt);
  running.sampling = std::move(request.sampling);
  GANNET_TRY(scheduler_.submit({.id = id,
                                .prompt = std::move(request.prompt),
                                .max_tokens = request.max_tokens,
                                .priority = request.priority,
                                .tenant = std::move(request.tenant),
                                .root = root_},
                               now_us()));
  ++next_id_;
  running_.emplace(id, std::move(running));
  return id;
}

void Engine::abort(RequestId id) {
  scheduler_.finish(id);
  running_.erase(id);
}

TokenEvent Engine::sample(RequestId id, Running& running, View logits) {
  const std::vector<int32_t>& tokens = *scheduler_.tokens(id);
  const auto n_generated = static_cast<int32_t>(tokens.size()) - running.n_prompt;
  const std::span<const float> row(logits.as<float>(), static_cast<size_t>(logits.dim(0)));
  auto sampled = sampler_.sample(row, running.sampling,
                                 {.counts = &running.counts,
                                  .n_generated = n_generated,
                                  .token_index = static_cast<uint32_t>(tokens.size()),
                                  .mask = options_.token_mask});
  TokenEvent event{.id = id};
  if (!sampled) {
    event.finished = FinishReason::failed;
    event.error = sampled.error().message;
    return event;
  }
  event.sampled = std::move(*sampled);
  running.counts.add(event.sampled.token);
  const auto& stops = running.sampling.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), event.sampled.token) != stops.end())
    event.finished = FinishReason::stop;
  else if (n_generated + 1 >= running.max_tokens)
    event.finished = FinishReason::length;
  return event;
}

bool Engine::step(const std::function<void(const TokenEvent&)>& on_token) {
  const sched::StepPlan plan = scheduler_.plan();
  if (plan.chunks.empty()) {
    GANNET_CHECK(scheduler_.idle(), "requests wait and none can run");
    return false;
  }
  std::vector<SeqChunk> chunks;
  std::vector<std::vector<int32_t>> tables;
  for (const sched::Chunk& chunk : plan.chunks) {
    if (chunk.fresh) executor_->reset_slot(chunk.slot);
    auto& table = tables.emplace_back();
    for (const kv::BlockId block : chunk.blocks) table.push_back(kv::index_of(block));
  }
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const sched::Chunk& chunk = plan.chunks[i];
    chunks.push_back({.slot = chunk.slot,
                      .block_table = tables[i],
                      .tokens = chunk.tokens,
                      .first_pos = chunk.first_pos,
                      .end = chunk.end,
                      .n_logits = chunk.samples ? 1 : 0});
  }
  const View logits = executor_->run(chunks);

  std::vector<TokenEvent> events;
  std::vector<int32_t> sampled;
  for (const sched::Chunk& chunk : plan.chunks) {
    if (!chunk.samples) continue;
    events.push_back(
        sample(chunk.request, running_.at(chunk.request), logits.row(static_cast<int64_t>(sampled.size()))));
    sampled.push_back(
        std::max(events.back().sampled.token, 0));  // a failed request ends below, its token is unused
  }
  scheduler_.complete(plan, sampled);
  for (const TokenEvent& event : events) {
    if (event.finished) abort(event.id);
    on_token(event);
  }
  return true;
}

}  // namespace gannet::engine
