#include "engine/engine.h"

#include <algorithm>

#include "base/check.h"
#include "engine/clock.h"
#include "engine/model_runner.h"

namespace gannet::engine {
namespace {

sched::SchedulerOptions scheduler_options(const RunnerInfo& runner, const EngineOptions& options) {
  sched::SchedulerOptions scheduler;
  scheduler.max_rows = runner.max_rows;
  scheduler.max_seqs = runner.n_slots;
  scheduler.max_context = runner.max_context;
  scheduler.block_tokens = runner.block_tokens;
  scheduler.max_steps_ahead = options.asynchronous ? 1 : 0;
  scheduler.prefix_hits = !runner.has_rings;  // with rings, blocks alone are not enough to resume from
  scheduler.policy = options.policy;
  return scheduler;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(Model& model, const Machine& machine, const EngineOptions& options,
                                               std::string weights_id) {
  const kv::KvSpec& spec = model.kv_spec();
  const int64_t blocks_per_seq = (int64_t{options.max_context} + spec.block_tokens - 1) / spec.block_tokens;
  const int64_t block_bytes = kv::KvLayout(spec).block_bytes;
  int64_t n_blocks = blocks_per_seq * options.max_seqs;
  if (options.kv_bytes > 0) n_blocks = options.kv_bytes / std::max<int64_t>(block_bytes, 1);

  ExecutorOptions executor;
  executor.n_blocks = static_cast<int32_t>(std::min<int64_t>(n_blocks, INT32_MAX));
  executor.n_slots = options.max_seqs;
  executor.max_rows = options.max_rows;
  executor.max_logit_rows = options.max_seqs;
  executor.max_context = options.max_context;
  executor.n_threads = options.n_threads;
  GANNET_ASSIGN(auto runner, ModelRunner::create(model, machine, executor));
  return create(std::move(runner), options, std::move(weights_id));
}

std::unique_ptr<Engine> Engine::create(std::unique_ptr<StepRunner> runner, EngineOptions options,
                                       std::string weights_id) {
  options.max_context = runner->info().max_context;
  options.max_seqs = runner->info().n_slots;
  options.max_rows = runner->info().max_rows;
  return std::unique_ptr<Engine>(new Engine(std::move(runner), options, std::move(weights_id)));
}

Engine::Engine(std::unique_ptr<StepRunner> runner, const EngineOptions& options, std::string weights_id)
    : options_(options),
      pool_(runner->info().n_blocks),
      index_(pool_),
      scheduler_(scheduler_options(runner->info(), options), pool_, index_),
      root_(kv::root_key({.weights = std::move(weights_id), .layout = runner->info().family})),
      queue_(std::move(runner), options.asynchronous) {}

Result<RequestId> Engine::submit(GenerateRequest request) {
  const int64_t begin_us = now_us();
  const int32_t vocab = runner().vocab;
  GANNET_TRY(sample::validate(request.sampling, vocab));
  for (const int32_t token : request.prompt)
    if (token < 0 || token >= vocab)
      return Error{Errc::bad_request, "the prompt has token id " + std::to_string(token) +
                                          ", the vocabulary ends at " + std::to_string(vocab - 1)};
  const RequestId id{next_id_};
  Running running;
  running.state = std::make_unique<SampleState>();
  running.n_prompt = static_cast<int32_t>(request.prompt.size());
  running.max_tokens = std::min(request.max_tokens, options_.max_context - running.n_prompt);
  running.state->counts.add_prompt(request.prompt);
  running.state->params = std::move(request.sampling);
  running.state->prompt = request.prompt;
  running.state->mask = options_.token_mask;
  running.submitted_us = begin_us;
  GANNET_TRY(scheduler_.submit({.id = id,
                                .prompt = std::move(request.prompt),
                                .max_tokens = request.max_tokens,
                                .priority = request.priority,
                                .tenant = std::move(request.tenant),
                                .root = root_},
                               begin_us));
  ++next_id_;
  running.prefix_match_us = now_us() - begin_us;
  running_.emplace(id, std::move(running));
  return id;
}

void Engine::abort(RequestId id) {
  const auto it = running_.find(id);
  if (it != running_.end() && !it->second.ended) end(id, it->second);
}

// The request has its last event. Its state stays until the steps that name it have retired.
void Engine::end(RequestId id, Running& running) {
  running.ended = true;
  running.state->cancelled = true;
  scheduler_.finish(id);
  if (running.n_in_flight == 0) running_.erase(id);
}

// Plans one step and hands it over; false when nothing can be planned now.
bool Engine::launch() {
  sched::StepPlan plan = scheduler_.plan();
  if (plan.chunks.empty()) return false;
  StepWork work;
  work.step = plan.step;
  for (sched::Chunk& chunk : plan.chunks) {
    Running& running = running_.at(chunk.request);
    if (running.planned_us == 0) running.planned_us = now_us();
    ++running.n_in_flight;
    SeqWork& seq = work.seqs.emplace_back();
    seq.state = running.state.get();
    seq.slot = chunk.slot;
    seq.fresh = chunk.fresh;
    seq.tokens = std::move(chunk.tokens);
    seq.pending = chunk.pending;
    seq.first_pos = chunk.first_pos;
    seq.end = chunk.end;
    seq.samples = chunk.samples;
    for (const kv::BlockId block : chunk.blocks) seq.block_table.push_back(kv::index_of(block));
  }
  in_flight_.push_back(std::move(plan));
  queue_.launch(std::move(work));
  return true;
}

RequestTimings Engine::timings_of(const Running& running) const {
  RequestTimings timings;
  timings.prefix_match_us = running.prefix_match_us;
  if (running.planned_us == 0) return timings;
  timings.queue_us = running.planned_us - running.submitted_us;
  if (running.first_token_us == 0) return timings;
  timings.prefill_us = running.first_token_us - running.planned_us;
  timings.decode_us = now_us() - running.first_token_us;
  return timings;
}

TokenEvent Engine::event_of(RequestId id, Running& running, const sample::Sampled& sampled) const {
  if (running.first_token_us == 0) running.first_token_us = now_us();
  TokenEvent event{.id = id, .sampled = sampled};
  const auto& stops = running.state->params.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), sampled.token) != stops.end())
    event.finished = FinishReason::stop;
  else if (++running.n_sampled >= running.max_tokens)
    event.finished = FinishReason::length;
  event.cached_tokens = scheduler_.cached_tokens(id);
  event.timings = timings_of(running);
  return event;
}

// Waits for the oldest step and takes its tokens in. A step that failed as a whole ends every request that it holds.
void Engine::retire(const OnToken& on_token) {
  const StepResult result = queue_.retire();
  const sched::StepPlan plan = std::move(in_flight_.front());
  in_flight_.pop_front();
  GANNET_CHECK(result.step == plan.step, "step {} retired, step {} was next", result.step, plan.step);
  std::vector<TokenEvent> events;
  std::vector<int32_t> sampled;
  for (const sched::Chunk& chunk : plan.chunks) {
    Running& running = running_.at(chunk.request);
    --running.n_in_flight;
    const SeqResult* seq = chunk.samples ? &result.seqs[sampled.size()] : nullptr;
    if (chunk.samples) sampled.push_back(seq->tokens.empty() ? 0 : seq->tokens[0].token);
    if (running.ended) continue;
    const std::string& error = result.error.empty() && seq != nullptr ? seq->error : result.error;
    if (error.empty() && seq == nullptr) continue;
    if (error.empty()) {
      events.push_back(event_of(chunk.request, running, seq->tokens.at(0)));
      continue;
    }
    events.push_back({.id = chunk.request, .finished = FinishReason::failed, .error = error});
    if (!result.error.empty()) events.back().error_code = Errc::io;
    scheduler_.finish(chunk.request);  // before complete(): its rows are of no use to anybody
  }
  scheduler_.complete(plan, sampled);
  for (const sched::Chunk& chunk : plan.chunks)
    if (const auto it = running_.find(chunk.request); it->second.ended && it->second.n_in_flight == 0)
      running_.erase(it);
  for (const TokenEvent& event : events) {
    const auto it = running_.find(event.id);
    if (it == running_.end() || it->second.ended) continue;  // aborted from within on_token
    if (event.finished) end(event.id, it->second);
    on_token(event);
  }
}

bool Engine::step(const OnToken& on_token) {
  const int ahead = options_.asynchronous ? 2 : 1;
  while (queue_.in_flight() < ahead && launch()) {
  }
  if (queue_.in_flight() == 0) {
    GANNET_CHECK(scheduler_.idle(), "requests wait and none can run");
    return false;
  }
  retire(on_token);
  return true;
}

}  // namespace gannet::engine
