#include "cli/generate.h"

#include <fmt/format.h>

#include <chrono>

#include "text/detokenizer.h"

namespace gannet::cli {

Result<Answer> generate(Loaded& loaded, std::vector<int32_t> prompt, sample::SamplingParams sampling,
                        int32_t max_tokens, const std::function<void(std::string_view)>& on_text,
                        const std::function<bool()>& stop) {
  using Clock = std::chrono::steady_clock;
  engine::Engine& engine = *loaded.engine;
  const engine::LoadedModel& model = *loaded.model;
  Answer answer;
  answer.n_prompt = static_cast<int32_t>(prompt.size());
  std::optional<Detokenizer> text;
  if (model.tokenizer) text.emplace(*model.tokenizer, DetokenizeOptions{.text_start = false});
  sampling.stop_token_ids.insert(sampling.stop_token_ids.end(), model.stop_ids.begin(), model.stop_ids.end());

  engine::GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling = std::move(sampling);
  request.max_tokens = max_tokens > 0 ? max_tokens : engine.options().max_context;
  const auto start = Clock::now();
  GANNET_ASSIGN(const engine::RequestId id, engine.submit(std::move(request)));

  const auto emit = [&](const std::string& piece) {
    answer.text += piece;
    if (!piece.empty()) on_text(piece);
  };
  Clock::time_point first, last;
  int32_t n_sampled = 0;
  bool done = false;
  std::string failure;
  const auto on_token = [&](const engine::TokenEvent& event) {
    if (event.id != id) return;
    last = Clock::now();
    if (n_sampled++ == 0) first = last;
    done = event.finished.has_value();
    if (done && *event.finished == engine::FinishReason::failed) {
      failure = event.error;
      return;
    }
    if (done) answer.finish_reason = *event.finished == engine::FinishReason::stop ? "stop" : "length";
    if (answer.finish_reason == "stop") return;
    answer.token_ids.push_back(event.sampled.token);
    if (text) emit(text->push(event.sampled.token));
  };
  while (!done && engine.step(on_token)) {
    if (answer.n_cached == 0) answer.n_cached = engine.cached_tokens(id);
    if (done || !stop()) continue;
    engine.abort(id);
    answer.finish_reason = "interrupted";
    done = true;
  }
  if (!failure.empty()) return Error{Errc::bad_request, failure};
  if (text) emit(text->flush());
  const auto seconds = [](auto duration) { return std::chrono::duration<double>(duration).count(); };
  if (n_sampled > 0) answer.ttft_ms = 1000 * seconds(first - start);
  if (n_sampled > 1) answer.tokens_per_s = (n_sampled - 1) / seconds(last - first);
  return answer;
}

std::string speed_line(const Answer& answer) {
  std::string line = fmt::format("[{} tokens", answer.token_ids.size());
  if (answer.tokens_per_s > 0) line += fmt::format(" at {:.0f} tokens/s", answer.tokens_per_s);
  line += fmt::format(", first after {:.0f} ms, prompt {} tokens", answer.ttft_ms, answer.n_prompt);
  if (answer.n_cached > 0) line += fmt::format(", {} cached", answer.n_cached);
  if (answer.finish_reason != "stop") line += fmt::format(", ended by {}", answer.finish_reason);
  return line + "]";
}

Json answer_json(const Answer& answer, double load_ms) {
  Json json = Json::object();
  json.set("text", answer.text);
  Json& ids = json.set("token_ids", Json::array());
  for (const int32_t id : answer.token_ids) ids.push(id);
  json.set("finish_reason", answer.finish_reason);
  json.set("prompt_tokens", answer.n_prompt);
  json.set("cached_tokens", answer.n_cached);
  json.set("ttft_ms", answer.ttft_ms);
  json.set("tokens_per_s", answer.tokens_per_s);
  json.set("load_ms", load_ms);
  return json;
}

}  // namespace gannet::cli
