// One client request as n sequences of the engine: tokens to text, stop strings, usage, and exactly one end.
//
// Threads: start() and abort() from any; the listener is called on the engine thread, one call at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/service.h"
#include "server/sampling_fields.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace gannet::server {

struct TokenLogprobs {
  int32_t token = 0;
  float logprob = 0;
  std::vector<sample::TokenLogprob> top;
};

// What one engine step added to one choice.
struct ChoiceDelta {
  int32_t index = 0;
  std::string text;
  std::vector<TokenLogprobs> logprobs;  // of tokens whose text is in this delta or before it
  std::string finish_reason;            // "stop" or "length" in the last delta of a choice, else empty
  Json stop_reason;                     // the stop string or token id that ended it, null for end of text
};

struct Usage {
  int32_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
  Json to_json() const;
};

struct Timings {
  int64_t queue_us = 0, first_token_us = 0, total_us = 0;  // from start()
};

struct GenerationListener {
  std::function<void(const ChoiceDelta& delta)> on_delta;
  std::function<void(const Usage& usage)> on_done;      // all choices ended
  std::function<void(const ApiError& error)> on_error;  // instead of on_done; nothing follows
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // `model` and `service` must outlive the generation's end.
  static std::shared_ptr<Generation> start(const engine::LoadedModel& model, engine::Service& service,
                                           std::vector<int32_t> prompt, const CommonFields& fields,
                                           GenerationListener listener);
  void abort();  // the client is gone: no further call of the listener

 private:
  struct Choice {
    engine::Ticket ticket{};
    Detokenizer detokenizer;
    StopStrings stops;
    std::vector<TokenLogprobs> waiting;  // logprobs whose text is still held back
    bool ended = false;
  };

  Generation(const engine::LoadedModel& model, engine::Service& service, const CommonFields& fields,
             GenerationListener listener);
  void on_event(int32_t index, const engine::ServiceEvent& event);
  void abort_all();
  void end_choice(Choice& choice, ChoiceDelta delta);

  const engine::LoadedModel& model_;
  engine::Service& service_;
  CommonFields fields_;
  GenerationListener listener_;
  std::mutex mutex_;  // guards tickets against abort()
  std::atomic<bool> aborted_{false};
  std::vector<Choice> choices_;
  int32_t n_open_ = 0;
  Usage usage_;
};

}  // namespace gannet::server
