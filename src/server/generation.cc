#include "server/generation.h"

#include <algorithm>

namespace gannet::server {

Json Usage::to_json() const {
  Json cached = Json::object();
  cached.set("cached_tokens", cached_tokens);
  Json usage = Json::object();
  usage.set("prompt_tokens", prompt_tokens);
  usage.set("completion_tokens", completion_tokens);
  usage.set("total_tokens", prompt_tokens + completion_tokens);
  usage.set("prompt_tokens_details", std::move(cached));
  return usage;
}

Generation::Generation(const engine::LoadedModel& model, engine::Service& service, const CommonFields& fields,
                       GenerationListener listener)
    : model_(model), service_(service), fields_(fields), listener_(std::move(listener)) {
  for (int32_t i = 0; i < fields_.n; ++i)
    choices_.push_back({.detokenizer = Detokenizer(
                            *model_.tokenizer, {.skip_special = fields_.skip_special_tokens, .text_start = false}),
                        .stops = StopStrings(fields_.stop, fields_.include_stop)});
  n_open_ = fields_.n;
}

std::shared_ptr<Generation> Generation::start(const engine::LoadedModel& model, engine::Service& service,
                                              std::vector<int32_t> prompt, const CommonFields& fields,
                                              GenerationListener listener) {
  std::shared_ptr<Generation> generation(new Generation(model, service, fields, std::move(listener)));
  generation->usage_.prompt_tokens = static_cast<int32_t>(prompt.size());
  for (int32_t i = 0; i < fields.n; ++i) {
    engine::GenerateRequest request;
    request.prompt = prompt;
    request.sampling = fields.sampling;
    request.sampling.choice = static_cast<uint32_t>(i);
    if (!fields.ignore_eos)
      request.sampling.stop_token_ids.insert(request.sampling.stop_token_ids.end(), model.stop_ids.begin(),
                                             model.stop_ids.end());
    request.max_tokens = fields.max_tokens.value_or(service.max_context());
    request.priority = fields.priority;
    request.tenant = fields.cache_salt;
    // Not under the lock: events may come at once, from the engine's thread or from within submit().
    const engine::Ticket ticket = service.submit(
        std::move(request), [generation, i](const engine::ServiceEvent& event) { generation->on_event(i, event); });
    const std::lock_guard lock(generation->mutex_);
    generation->choices_[static_cast<size_t>(i)].ticket = ticket;
  }
  if (generation->aborted_) generation->abort_all();  // one failed before the others had their tickets
  return generation;
}

void Generation::abort() {
  if (!aborted_.exchange(true)) abort_all();
}

void Generation::abort_all() {
  const std::lock_guard lock(mutex_);
  for (const Choice& choice : choices_) service_.abort(choice.ticket);
}

void Generation::end_choice(Choice& choice, ChoiceDelta delta) {
  choice.ended = true;
  delta.logprobs.insert(delta.logprobs.end(), choice.waiting.begin(), choice.waiting.end());
  choice.waiting.clear();
  listener_.on_delta(delta);
  if (--n_open_ == 0) listener_.on_done(usage_);
}

void Generation::on_event(int32_t index, const engine::ServiceEvent& event) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  if (aborted_ || choice.ended) return;
  if (event.aborted || event.token.finished == engine::FinishReason::failed) {
    aborted_ = true;  // one failed choice ends the request: the others are stopped
    ApiError error = event.aborted
                         ? ApiError{503, "the server is shutting down", "server_error", "", "server_overloaded"}
                         : api_error({event.error_code, event.token.error});
    abort_all();
    return listener_.on_error(error);
  }
  const sample::Sampled& sampled = event.token.sampled;
  ++usage_.completion_tokens;
  usage_.cached_tokens = std::max(usage_.cached_tokens, event.cached_tokens);
  const bool stopped_by_id = event.token.finished == engine::FinishReason::stop;
  ChoiceDelta delta{.index = index};
  if (!stopped_by_id) {
    if (fields_.sampling.top_logprobs >= 0) choice.waiting.push_back({sampled.token, sampled.logprob, sampled.top});
    delta.text = choice.stops.push(choice.detokenizer.push(sampled.token));
  }
  if (choice.stops.found()) {
    delta.finish_reason = "stop";
    delta.stop_reason = Json(choice.stops.which());
    service_.abort(event.ticket);
    return end_choice(choice, std::move(delta));
  }
  if (event.token.finished) {
    delta.text += choice.stops.push(choice.detokenizer.flush());
    if (!choice.stops.found()) delta.text += choice.stops.flush();
    delta.finish_reason = stopped_by_id ? "stop" : "length";
    const auto& eos = model_.stop_ids;
    if (stopped_by_id && std::find(eos.begin(), eos.end(), sampled.token) == eos.end())
      delta.stop_reason = Json(sampled.token);
    return end_choice(choice, std::move(delta));
  }
  if (delta.text.empty()) return;
  delta.logprobs = std::exchange(choice.waiting, {});
  listener_.on_delta(delta);
}

}  // namespace gannet::server
