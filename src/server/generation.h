// Runs one request on the engine: every prompt n times, tokens to reply events, and exactly one end.
//
// Threads: start() and abort() from any; the sink and the observer are called on the engine thread, one call at a
// time (start() itself delivers the end of a request that generates nothing).
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/service.h"
#include "server/choice_stream.h"
#include "server/generation_request.h"
#include "server/reply_event.h"

namespace gannet::server {

// What metrics and logs want to know of a request.
struct GenerationRecord {
  std::string request_id;
  enum class End : uint8_t { finished, failed, aborted } end = End::finished;
  Usage usage;
  Timings timings;
  int32_t n = 1;
  int32_t max_tokens = 0;
  std::vector<Finish> finishes;  // of choices that ended
};

class GenerationObserver {
 public:
  virtual ~GenerationObserver() = default;
  virtual void started() = 0;
  virtual void first_token(int64_t us) = 0;         // since the request was there
  virtual void token_gap(int64_t us) = 0;           // between two tokens of one choice
  virtual void ended(const GenerationRecord&) = 0;  // once for each started()
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  using Clock = std::chrono::steady_clock;

  // `model`, `service` and `observer` (may be null) must outlive the generation's end. `arrived` is when the
  // request was there; tokenizing is what passed since.
  static std::shared_ptr<Generation> start(const engine::LoadedModel& model, engine::Service& service,
                                           GenerationRequest request, std::shared_ptr<ReplySink> sink,
                                           Clock::time_point arrived, GenerationObserver* observer = nullptr);
  void abort();  // the client is gone: no further call of the sink

 private:
  struct Choice {
    engine::Ticket ticket{};
    ChoiceStream stream;
    Clock::time_point last_token;
  };

  Generation(const engine::LoadedModel& model, engine::Service& service, GenerationRequest request,
             std::shared_ptr<ReplySink> sink, Clock::time_point arrived, GenerationObserver* observer);
  void submit(int32_t index);
  void finish_at_once();
  void on_event(int32_t index, const engine::ServiceEvent& event);
  void on_token(int32_t index, const engine::ServiceEvent& event);
  void fail(const ApiError& error);
  void note_token(Choice& choice);
  void deliver(Choice& choice);
  void abort_all();
  void record(GenerationRecord::End end);
  int64_t since_arrival_us() const;

  const engine::LoadedModel& model_;
  engine::Service& service_;
  GenerationRequest request_;
  std::shared_ptr<ReplySink> sink_;
  Clock::time_point arrived_;
  GenerationObserver* observer_;
  std::mutex mutex_;  // guards tickets against abort()
  std::atomic<bool> aborted_{false}, recorded_{false};
  std::vector<Choice> choices_;
  std::vector<ReplyEvent> events_;
  std::vector<Finish> finishes_;
  int32_t n_open_ = 0;
  Usage usage_;
  Timings timings_;
};

}  // namespace gannet::server
