// Runs requests on one model: scheduler, executor and sampler joined. Synchronous: the caller drives it step by
// step. Owner: one thread, the engine thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/executor.h"
#include "kv/index/prefix_index.h"
#include "sample/params.h"
#include "sample/sampler.h"
#include "sched/scheduler.h"

namespace gannet::engine {

using sched::RequestId;

struct GenerateRequest {
  std::vector<int32_t> prompt;
  sample::SamplingParams sampling;  // stop_token_ids end the text
  int32_t max_tokens = 1;           // sampled at most; cut to what the context holds
  int32_t priority = 0;
  std::string tenant;
};

enum class FinishReason : uint8_t { stop, length, failed };

// One sampled token, or (with `failed`) the end of a request without one.
struct TokenEvent {
  RequestId id{};
  sample::Sampled sampled;  // the stop token itself is reported too, as the last one
  std::optional<FinishReason> finished;
  std::string error;  // of `failed`
};

struct EngineOptions {
  int32_t max_context = 0;  // prompt + answer of one request
  int32_t max_seqs = 1;     // running at once
  int32_t max_rows = 512;   // of one step
  int64_t kv_bytes = 0;     // 0: what max_seqs requests of max_context tokens need
  int n_threads = 0;
  sched::Policy policy = sched::Policy::first_come;
  std::vector<uint32_t> token_mask;  // one bit an id that may be sampled; empty: all
};

class Engine {
 public:
  // Borrows the model. `weights_id` names its weights in cache keys.
  static Result<std::unique_ptr<Engine>> create(Model& model, const Machine& machine, const EngineOptions& options,
                                                std::string weights_id);

  // bad_request or no_capacity for what can never run.
  Result<RequestId> submit(GenerateRequest request);
  // Ends a request without a further event. Unknown ids are ignored.
  void abort(RequestId id);

  // Plans and runs one step, and reports each sampled token. Returns false when there is nothing to do.
  bool step(const std::function<void(const TokenEvent&)>& on_token);

  int32_t cached_tokens(RequestId id) const { return scheduler_.cached_tokens(id); }
  sched::SchedulerCounts counts() const { return scheduler_.counts(); }
  Executor& executor() { return *executor_; }
  const kv::BlockPool& pool() const { return pool_; }
  const EngineOptions& options() const { return options_; }

 private:
  struct Running {
    sample::SamplingParams sampling;
    sample::TokenCounts counts;
    int32_t n_prompt = 0;
    int32_t max_tokens = 0;
  };

  Engine(Model& model, const Machine& machine, const EngineOptions& options, std::unique_ptr<Executor> executor,
         std::string weights_id, const sched::SchedulerOptions& scheduler);
  TokenEvent sample(RequestId id, Running& running, View logits);

  Model& model_;
  EngineOptions options_;
  std::unique_ptr<Executor> executor_;
  kv::BlockPool pool_;
  kv::PrefixIndex index_;
  sched::Scheduler scheduler_;
  sample::Sampler sampler_;
  kv::BlockKey root_;
  std::map<RequestId, Running> running_;
  int64_t next_id_ = 1;
};

}  // namespace gannet::engine
