#include "server/generation.h"

#include <algorithm>

namespace gannet::server {

Generation::Generation(const engine::LoadedModel& model, engine::Service& service, GenerationRequest request,
                       std::shared_ptr<ReplySink> sink, Clock::time_point arrived, GenerationObserver* observer)
    : model_(model),
      service_(service),
      request_(std::move(request)),
      sink_(std::move(sink)),
      arrived_(arrived),
      observer_(observer) {
  const auto n = static_cast<int32_t>(request_.prompts.size()) * request_.n;
  choices_.reserve(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i)
    choices_.push_back({.stream = ChoiceStream(*model_.tokenizer, request_, i), .last_token = {}});
  n_open_ = n;
  for (const auto& prompt : request_.prompts) usage_.prompt_tokens += static_cast<int32_t>(prompt.size());
  timings_.tokenize_us = since_arrival_us();
}

int64_t Generation::since_arrival_us() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - arrived_).count();
}

std::shared_ptr<Generation> Generation::start(const engine::LoadedModel& model, engine::Service& service,
                                              GenerationRequest request, std::shared_ptr<ReplySink> sink,
                                              Clock::time_point arrived, GenerationObserver* observer) {
  std::shared_ptr<Generation> generation(
      new Generation(model, service, std::move(request), std::move(sink), arrived, observer));
  if (observer != nullptr) observer->started();
  if (generation->request_.max_tokens == 0) {
    generation->finish_at_once();
    return generation;
  }
  for (size_t i = 0; i < generation->choices_.size(); ++i) generation->submit(static_cast<int32_t>(i));
  if (generation->aborted_) generation->abort_all();  // one failed before the others had their tickets
  return generation;
}

void Generation::submit(int32_t index) {
  engine::GenerateRequest request;
  request.prompt = request_.prompts[static_cast<size_t>(index / request_.n)];
  request.sampling = request_.sampling;
  request.sampling.choice = static_cast<uint32_t>(index % request_.n);
  if (!request_.ignore_eos)
    request.sampling.stop_token_ids.insert(request.sampling.stop_token_ids.end(), model_.stop_ids.begin(),
                                           model_.stop_ids.end());
  request.max_tokens = request_.max_tokens.value_or(service_.max_context());
  request.priority = request_.priority;
  request.tenant = request_.cache_salt;
  // Not under the lock: events may come at once, from the engine's thread or from within submit().
  const engine::Ticket ticket = service_.submit(
      std::move(request),
      [self = shared_from_this(), index](const engine::ServiceEvent& event) { self->on_event(index, event); });
  const std::lock_guard lock(mutex_);
  choices_[static_cast<size_t>(index)].ticket = ticket;
}

void Generation::finish_at_once() {
  for (Choice& choice : choices_) {
    choice.stream.finish(true, Json(), events_);
    deliver(choice);
  }
}

void Generation::abort() {
  if (aborted_.exchange(true)) return;
  abort_all();
  record(GenerationRecord::End::aborted);
}

void Generation::abort_all() {
  const std::lock_guard lock(mutex_);
  for (const Choice& choice : choices_) service_.abort(choice.ticket);
}

void Generation::record(GenerationRecord::End end) {
  if (observer_ == nullptr || recorded_.exchange(true)) return;
  GenerationRecord record{
      .request_id = request_.id, .end = end, .n = request_.n, .max_tokens = request_.max_tokens.value_or(0)};
  if (end == GenerationRecord::End::finished) {  // otherwise the engine thread may still be counting
    record.usage = usage_;
    record.timings = timings_;
    record.finishes = finishes_;
  }
  observer_->ended(record);
}

void Generation::fail(const ApiError& error) {
  if (aborted_.exchange(true)) return;  // one failed choice ends the request: the others are stopped
  abort_all();
  sink_->error(error);
  record(GenerationRecord::End::failed);
}

void Generation::on_event(int32_t index, const engine::ServiceEvent& event) {
  if (aborted_ || choices_[static_cast<size_t>(index)].stream.ended()) return;
  if (event.aborted) return fail({503, "the server is shutting down", "server_error", "", "server_overloaded"});
  if (event.token.finished == engine::FinishReason::failed)
    return fail(api_error({event.error_code, event.token.error}));
  on_token(index, event);
}

void Generation::on_token(int32_t index, const engine::ServiceEvent& event) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  note_token(choice);
  if (index % request_.n == 0 && choice.stream.tokens() == 0) {
    usage_.cached_tokens += event.cached_tokens;
    timings_.queue_us = std::max(timings_.queue_us, event.queue_us);
  }
  const sample::Sampled& sampled = event.token.sampled;
  const bool stopped_by_id = event.token.finished == engine::FinishReason::stop;
  if (stopped_by_id)
    choice.stream.count_end_token();
  else
    choice.stream.push(sampled, events_);
  if (event.token.finished) {
    const auto& eos = model_.stop_ids;
    const bool by_client = stopped_by_id && std::find(eos.begin(), eos.end(), sampled.token) == eos.end();
    choice.stream.finish(!stopped_by_id, by_client ? Json(sampled.token) : Json(), events_);
  } else if (choice.stream.ended()) {
    service_.abort(event.ticket);
  }
  deliver(choice);
}

void Generation::note_token(Choice& choice) {
  const auto now = Clock::now();
  if (timings_.first_token_us < 0) {
    timings_.first_token_us = since_arrival_us();
    if (observer_ != nullptr) observer_->first_token(timings_.first_token_us);
  }
  if (observer_ != nullptr && choice.last_token != Clock::time_point())
    observer_->token_gap(std::chrono::duration_cast<std::chrono::microseconds>(now - choice.last_token).count());
  choice.last_token = now;
}

void Generation::deliver(Choice& choice) {
  if (events_.empty()) return;
  for (const ReplyEvent& event : events_) {
    if (event.kind == ReplyEvent::Kind::finish) finishes_.push_back(event.finish);
    sink_->event(event);
  }
  events_.clear();
  sink_->flush();
  if (!choice.stream.ended()) return;
  usage_.completion_tokens += choice.stream.tokens();
  usage_.reasoning_tokens += choice.stream.reasoning_tokens();
  if (--n_open_ > 0) return;
  timings_.total_us = since_arrival_us();
  if (aborted_) return;
  sink_->done(usage_, timings_);
  record(GenerationRecord::End::finished);
}

}  // namespace gannet::server
