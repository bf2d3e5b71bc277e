// Runs requests on one model: scheduler and step runner joined. The caller drives it; while a step runs on the queue's
// thread the next one is planned and handed over, so whatever computes never waits for planning. Owner: one thread, the
// engine thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/step_queue.h"
#include "kv/index/prefix_index.h"
#include "model/model.h"
#include "sample/params.h"
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

// Where the time of one request went, in microseconds, up to the event that carries it.
struct RequestTimings {
  int64_t queue_us = 0;         // from submit() until its first rows were planned
  int64_t prefix_match_us = 0;  // of submit(): checks, block keys
  int64_t prefill_us = 0;       // from there until its first token
  int64_t decode_us = 0;        // from its first token until this one
};

// One sampled token, or (with `failed`) the end of a request without one.
struct TokenEvent {
  RequestId id{};
  sample::Sampled sampled;  // the stop token itself is reported too, as the last one
  std::optional<FinishReason> finished;
  std::string error;                      // of `failed`
  Errc error_code = Errc::bad_request;    // io: the runner failed, the request was sound
  int32_t cached_tokens = 0;  // of the prompt: rows that came from the cache
  RequestTimings timings;
};

struct EngineOptions {
  int32_t max_context = 0;  // prompt + answer of one request
  int32_t max_seqs = 1;     // running at once
  int32_t max_rows = 512;   // of one step
  int64_t kv_bytes = 0;     // 0: what max_seqs requests of max_context tokens need
  int n_threads = 0;
  bool asynchronous = true;  // plan the next step while one runs; the text is the same either way
  sched::Policy policy = sched::Policy::first_come;
  std::vector<uint32_t> token_mask;  // one bit an id that may be sampled; empty: all
};

class Engine {
 public:
  // Borrows the model. `weights_id` names its weights in cache keys.
  static Result<std::unique_ptr<Engine>> create(Model& model, const Machine& machine, const EngineOptions& options,
                                                std::string weights_id);
  // The same over any runner. Of the options only those that do not describe the runner count: the policy, the mask,
  // `asynchronous`; max_context, max_seqs and max_rows are the runner's.
  static std::unique_ptr<Engine> create(std::unique_ptr<StepRunner> runner, EngineOptions options,
                                        std::string weights_id);

  // bad_request or no_capacity for what can never run.
  Result<RequestId> submit(GenerateRequest request);
  // Ends a request without a further event. Unknown ids are ignored. What it owns comes free when the steps that it is
  // part of have run.
  void abort(RequestId id);

  // Plans and hands over what can run next, waits for the oldest step and reports each sampled token. Returns false
  // when there is nothing to do.
  bool step(const std::function<void(const TokenEvent&)>& on_token);

  bool idle() const { return running_.empty() && queue_.in_flight() == 0; }
  int32_t cached_tokens(RequestId id) const { return scheduler_.cached_tokens(id); }
  sched::SchedulerCounts counts() const { return scheduler_.counts(); }
  int64_t launched_steps() const { return queue_.n_launched(); }  // for any thread
  const RunnerInfo& runner() const { return queue_.runner().info(); }
  const kv::BlockPool& pool() const { return pool_; }
  const EngineOptions& options() const { return options_; }

 private:
  struct Running {
    std::unique_ptr<SampleState> state;
    int32_t n_prompt = 0, n_sampled = 0, max_tokens = 0;
    int32_t n_in_flight = 0;  // steps that name `state`
    bool ended = false;       // its last event is out
    int64_t submitted_us = 0, planned_us = 0, first_token_us = 0, prefix_match_us = 0;
  };
  using OnToken = std::function<void(const TokenEvent&)>;

  Engine(std::unique_ptr<StepRunner> runner, const EngineOptions& options, std::string weights_id);
  bool launch();
  void retire(const OnToken& on_token);
  void end(RequestId id, Running& running);
  TokenEvent event_of(RequestId id, Running& running, const sample::Sampled& sampled) const;
  RequestTimings timings_of(const Running& running) const;

  EngineOptions options_;
  kv::BlockPool pool_;
  kv::PrefixIndex index_;
  sched::Scheduler scheduler_;
  kv::BlockKey root_;
  std::map<RequestId, Running> running_;
  std::deque<sched::StepPlan> in_flight_;
  int64_t next_id_ = 1;
  StepQueue queue_;  // destroyed first: steps under way use what stands above
};

}  // namespace gannet::engine
