#include "server/openai_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/utf8.h"
#include "server/sse.h"

namespace gannet::server {
namespace {

Json finite(float logprob) { return std::isfinite(logprob) ? Json(static_cast<double>(logprob)) : Json(-9999.0); }

}  // namespace

OpenAiReply::OpenAiReply(const RouteContext& context, OpenAiReplyOptions options,
                         std::shared_ptr<net::Exchange> exchange)
    : model_(context.model),
      options_(std::move(options)),
      exchange_(std::move(exchange)),
      id_(context.request_id),
      model_id_(context.model_id),
      fingerprint_(context.fingerprint),
      created_(unix_seconds()),
      opened_(static_cast<size_t>(options_.n_choices)),
      collector_(options_.n_choices) {
  chunk_front_ = fmt::format(
      "{{\"id\":{},\"object\":\"{}\",\"created\":{},\"model\":{},\"system_fingerprint\":{},\"choices\":[",
      json_text(id_), options_.chat ? "chat.completion.chunk" : "text_completion", created_, json_text(model_id_),
      json_text(fingerprint_));
}

// The status line waits for the first token: until then a request can still be refused with its proper status.
void OpenAiReply::begin() {
  if (std::exchange(begun_, true)) return;
  exchange_->start_stream(200, kSseType, stream_headers(id_));
}

void OpenAiReply::chunk(int32_t choice, std::string_view delta, std::string_view logprobs,
                        std::string_view finish) {
  fmt::format_to(std::back_inserter(out_),
                 "data: {}{{\"index\":{},{},\"logprobs\":{},\"finish_reason\":{}}}]{}}}\n\n", chunk_front_, choice,
                 delta, logprobs.empty() ? "null" : logprobs, finish.empty() ? "null" : finish,
                 options_.include_usage ? ",\"usage\":null" : "");
}

void OpenAiReply::open_choice(int32_t choice) {
  if (std::exchange(opened_[static_cast<size_t>(choice)], 1)) return;
  if (options_.chat)
    chunk(choice, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}", {}, {});
  else if (!options_.echo.empty())
    chunk(choice, "\"text\":" + json_text(options_.echo[static_cast<size_t>(choice / options_.best_of)]), {}, {});
}

void OpenAiReply::event(const ReplyEvent& event) {
  const bool hidden = event.kind == ReplyEvent::Kind::reasoning && !options_.reasoning;
  if (hidden) return;
  if (!options_.stream) return collector_.add(event);
  open_choice(event.choice);
  if (event.kind == ReplyEvent::Kind::finish) {
    std::string finish =
        fmt::format("\"{}\",\"stop_reason\":{}", finish_name(event.finish), event.stop_reason.dump());
    return chunk(event.choice, options_.chat ? "\"delta\":{}" : "\"text\":\"\"", {}, finish);
  }
  if (options_.chat)
    chat_event(event);
  else
    text_chunk(event.choice, event.text, event.logprobs);
}

void OpenAiReply::chat_event(const ReplyEvent& event) {
  std::string logprobs;
  if (options_.logprobs && !event.logprobs.empty())
    logprobs = event.kind == ReplyEvent::Kind::content ? chat_logprobs(event.logprobs, {}).dump()
                                                       : chat_logprobs({}, event.logprobs).dump();
  switch (event.kind) {
    case ReplyEvent::Kind::content:
      return chunk(event.choice, fmt::format("\"delta\":{{\"content\":{}}}", json_text(event.text)), logprobs, {});
    case ReplyEvent::Kind::reasoning:
      return chunk(event.choice, fmt::format("\"delta\":{{\"reasoning_content\":{}}}", json_text(event.text)),
                   logprobs, {});
    case ReplyEvent::Kind::tool_begin: {
      const std::string space =
          event.name_space.empty() ? "" : fmt::format(",\"namespace\":{}", json_text(event.name_space));
      return chunk(
          event.choice,
          fmt::format("\"delta\":{{\"tool_calls\":[{{\"index\":{},\"id\":\"call_{}\",\"type\":\"function\","
                      "\"function\":{{\"name\":{},\"arguments\":\"\"}}{}}}]}}",
                      event.tool_index, event.tool_id, json_text(event.name), space),
          {}, {});
    }
    case ReplyEvent::Kind::tool_args:
      return chunk(event.choice,
                   fmt::format("\"delta\":{{\"tool_calls\":[{{\"index\":{},\"function\":{{\"arguments\":{}}}}}]}}",
                               event.tool_index, json_text(event.text)),
                   {}, {});
    default:
      return;
  }
}

void OpenAiReply::text_chunk(int32_t choice, std::string_view text, const std::vector<TokenLogprobs>& logprobs) {
  if (text.empty() && logprobs.empty()) return;
  chunk(choice, "\"text\":" + json_text(text), options_.logprobs ? text_logprobs(logprobs, choice).dump() : "", {});
}

void OpenAiReply::flush() {
  if (out_.empty()) return;
  begin();
  exchange_->send(std::exchange(out_, {}));
}

void OpenAiReply::done(const Usage& usage, const Timings& timings) {
  if (!options_.stream)
    return exchange_->reply(200, "application/json", whole(usage, timings).dump(), {{"X-Request-Id", id_}});
  if (options_.include_usage || options_.timings) {
    std::string tail = fmt::format("data: {}],\"usage\":{}", chunk_front_, usage_json(usage).dump());
    if (options_.timings) tail += fmt::format(",\"timings\":{}", timings_json(usage, timings).dump());
    out_ += tail + "}\n\n";
  }
  out_ += sse_done();
  flush();
  exchange_->end_stream();
}

void OpenAiReply::error(const ApiError& error) {
  if (!begun_) return send_error(*exchange_, error);
  out_ += sse(error.openai_body()) + sse_done();
  flush();
  exchange_->end_stream();
}

Json OpenAiReply::logprob_entry(int32_t id, float logprob) const {
  const std::string_view raw = model_.tokenizer->token_bytes(id);
  Json bytes = Json::array();
  for (const char c : raw) bytes.push(static_cast<int>(static_cast<unsigned char>(c)));
  Json entry = Json::object();
  entry.set("token", raw);
  entry.set("logprob", finite(logprob));
  entry.set("bytes", std::move(bytes));
  return entry;
}

Json OpenAiReply::chat_logprobs(const std::vector<TokenLogprobs>& content,
                                const std::vector<TokenLogprobs>& reasoning) const {
  const auto list = [&](const std::vector<TokenLogprobs>& tokens) {
    Json out = Json::array();
    for (const TokenLogprobs& token : tokens) {
      Json entry = logprob_entry(token.token, token.logprob);
      Json& top = entry.set("top_logprobs", Json::array());
      for (const auto& other : token.top) top.push(logprob_entry(other.id, other.logprob));
      out.push(std::move(entry));
    }
    return out;
  };
  Json logprobs = Json::object();
  logprobs.set("content", list(content));
  if (!reasoning.empty()) logprobs.set("reasoning_content", list(reasoning));
  logprobs.set("refusal", Json());
  return logprobs;
}

Json OpenAiReply::text_logprobs(const std::vector<TokenLogprobs>& tokens, int32_t choice) {
  Json texts = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  const int64_t front =
      options_.echo.empty() ? 0 : count_code_points(options_.echo[static_cast<size_t>(choice / options_.best_of)]);
  for (const TokenLogprobs& token : tokens) {
    texts.push(model_.tokenizer->token_bytes(token.token));
    values.push(finite(token.logprob));
    Json& top = tops.push(Json::object());
    for (const auto& other : token.top) top.set(model_.tokenizer->token_bytes(other.id), finite(other.logprob));
    offsets.push(front + token.char_offset);
  }
  Json logprobs = Json::object();
  logprobs.set("tokens", std::move(texts));
  logprobs.set("token_logprobs", std::move(values));
  logprobs.set("top_logprobs", std::move(tops));
  logprobs.set("text_offset", std::move(offsets));
  return logprobs;
}

Json OpenAiReply::usage_json(const Usage& usage) const {
  Json cached = Json::object();
  cached.set("cached_tokens", usage.cached_tokens);
  Json reasoning = Json::object();
  reasoning.set("reasoning_tokens", usage.reasoning_tokens);
  Json out = Json::object();
  out.set("prompt_tokens", usage.prompt_tokens);
  out.set("completion_tokens", usage.completion_tokens);
  out.set("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  out.set("prompt_tokens_details", std::move(cached));
  out.set("completion_tokens_details", std::move(reasoning));
  out.set("prompt_cache_hit_tokens", usage.cached_tokens);
  out.set("prompt_cache_miss_tokens", usage.prompt_tokens - usage.cached_tokens);
  return out;
}

// Indices of the choices to show, prompt by prompt: with best_of, those of largest mean log-probability.
std::vector<int32_t> OpenAiReply::shown(const std::vector<WholeChoice>& choices) const {
  std::vector<int32_t> out;
  const auto mean = [&](int32_t i) {
    const WholeChoice& choice = choices[static_cast<size_t>(i)];
    return choice.n_tokens == 0 ? 0.0 : choice.sum_logprob / choice.n_tokens;
  };
  for (int32_t first = 0; first < options_.n_choices; first += options_.best_of) {
    std::vector<int32_t> order(static_cast<size_t>(options_.best_of));
    std::iota(order.begin(), order.end(), first);
    if (options_.best_of > options_.n_shown)
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return mean(a) > mean(b); });
    out.insert(out.end(), order.begin(), order.begin() + options_.n_shown);
  }
  return out;
}

Json OpenAiReply::whole_choice(const WholeChoice& from, int32_t index, int32_t shown_as) {
  Json choice = Json::object();
  choice.set("index", shown_as);
  if (!options_.chat) {
    const std::string front =
        options_.echo.empty() ? "" : options_.echo[static_cast<size_t>(index / options_.best_of)];
    choice.set("text", front + from.content);
    choice.set("logprobs", options_.logprobs ? text_logprobs(from.content_logprobs, index) : Json());
  } else {
    Json& message = choice.set("message", Json::object());
    message.set("role", "assistant");
    message.set("content", from.content.empty() && !from.calls.empty() ? Json() : Json(from.content));
    if (!from.reasoning.empty()) message.set("reasoning_content", from.reasoning);
    message.set("refusal", Json());
    if (!from.calls.empty()) {
      Json& calls = message.set("tool_calls", Json::array());
      for (const WholeCall& call : from.calls) {
        Json function = Json::object();
        function.set("name", call.name);
        function.set("arguments", call.arguments);
        Json& entry = calls.push(Json::object());
        entry.set("id", "call_" + call.id);
        entry.set("type", "function");
        entry.set("function", std::move(function));
        if (!call.name_space.empty()) entry.set("namespace", call.name_space);
      }
    }
    choice.set("logprobs",
               options_.logprobs ? chat_logprobs(from.content_logprobs, from.reasoning_logprobs) : Json());
  }
  choice.set("finish_reason", finish_name(from.finish));
  choice.set("stop_reason", from.stop_reason);
  return choice;
}

Json OpenAiReply::whole(const Usage& usage, const Timings& timings) {
  const std::vector<WholeChoice> all = collector_.take();
  Json out = Json::object();
  out.set("id", id_);
  out.set("object", options_.chat ? "chat.completion" : "text_completion");
  out.set("created", created_);
  out.set("model", model_id_);
  Json& choices = out.set("choices", Json::array());
  int32_t index = 0;
  for (const int32_t i : shown(all)) choices.push(whole_choice(all[static_cast<size_t>(i)], i, index++));
  out.set("usage", usage_json(usage));
  out.set("system_fingerprint", fingerprint_);
  if (options_.timings) out.set("timings", timings_json(usage, timings));
  return out;
}

}  // namespace gannet::server
