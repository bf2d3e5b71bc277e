// The engine on a thread of its own: requests come from any thread, events leave through callbacks, and every
// request that submit() took ends in exactly one event with `finished`.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace gannet::engine {

enum class Ticket : int64_t {};

struct ServiceEvent {
  Ticket ticket{};
  TokenEvent token;                     // token.sampled is meaningful unless `finished` is failed or aborted
  bool aborted = false;                 // ended by abort() or stop(): no token, no error
  Errc error_code = Errc::bad_request;  // of a failed one
  int32_t cached_tokens = 0;            // of the prompt, once it ran
  int64_t queue_us = 0;                 // from submit() until its first rows were planned
};
// Called on the engine thread: must not block. The last call has token.finished set, or aborted.
using EventCallback = std::function<void(const ServiceEvent& event)>;

struct ServiceCounts {
  sched::SchedulerCounts scheduler;
  int64_t kv_blocks_total = 0, kv_blocks_held = 0, kv_blocks_kept = 0;
  int64_t sampled_tokens = 0, steps = 0;
};

class Service {
 public:
  // Takes over the engine; the model stays borrowed.
  explicit Service(std::unique_ptr<Engine> engine);
  ~Service();  // stop()
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Never blocks on the engine. Refusals arrive as a failed event, like any other end.
  Ticket submit(GenerateRequest request, EventCallback callback);
  // Ends a request within one step; its last event says aborted. Unknown and ended tickets are ignored.
  void abort(Ticket ticket);

  ServiceCounts counts() const;  // as of the last step
  int32_t max_context() const { return max_context_; }

  // Takes no more requests (they end as aborted) and waits until all that run have ended, at most so long; then ends the
  // rest as stop() does. Returns how many were cut off. For one thread, once.
  int64_t drain(std::chrono::milliseconds longest);

  // Ends all requests as aborted and joins the thread.
  void stop();

 private:
  struct Submission {
    Ticket ticket;
    GenerateRequest request;
    EventCallback callback;
    int64_t submitted_us;
  };
  struct Running {
    Ticket ticket;
    EventCallback callback;
    int64_t queue_us;
  };

  void loop();
  bool take_commands();  // false: stop
  void on_token(const TokenEvent& event);
  void publish_counts();
  void note_ended();

  std::unique_ptr<Engine> engine_;
  int32_t max_context_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Submission> submissions_;
  std::vector<Ticket> aborts_;
  bool stop_ = false, draining_ = false;
  int64_t n_open_ = 0;               // submitted and not ended
  std::condition_variable all_ended_;  // n_open_ fell to 0
  int64_t next_ticket_ = 1;

  // Engine thread only.
  std::map<RequestId, Running> running_;
  std::map<Ticket, RequestId> ids_;
  int64_t sampled_tokens_ = 0, steps_ = 0;

  mutable std::mutex counts_mutex_;
  ServiceCounts counts_;
  std::thread thread_;
};

}  // namespace gannet::engine
