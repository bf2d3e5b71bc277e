#include "server/openai.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "server/sse.h"
#include "text/chat_openai.h"

namespace gannet::server {
namespace {

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// What differs between the two routes.
struct Shape {
  bool chat;
  const char* object;        // of a whole reply
  const char* chunk_object;  // of a streamed piece
};
constexpr Shape kChat{true, "chat.completion", "chat.completion.chunk"};
constexpr Shape kText{false, "text_completion", "text_completion"};

Json token_text(const engine::LoadedModel& model, int32_t id, Json& bytes) {
  const std::string_view raw = model.tokenizer->token_bytes(id);
  bytes = Json::array();
  for (const char c : raw) bytes.push(static_cast<int>(static_cast<unsigned char>(c)));
  return Json(raw);
}

Json logprob_entry(const engine::LoadedModel& model, int32_t id, float logprob) {
  Json entry = Json::object();
  Json bytes;
  entry.set("token", token_text(model, id, bytes));
  entry.set("logprob", std::isfinite(logprob) ? Json(static_cast<double>(logprob)) : Json(-9999.0));
  entry.set("bytes", std::move(bytes));
  return entry;
}

Json chat_logprobs(const engine::LoadedModel& model, const std::vector<TokenLogprobs>& tokens) {
  Json content = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json entry = logprob_entry(model, token.token, token.logprob);
    Json& top = entry.set("top_logprobs", Json::array());
    for (const auto& other : token.top) top.push(logprob_entry(model, other.id, other.logprob));
    content.push(std::move(entry));
  }
  Json logprobs = Json::object();
  logprobs.set("content", std::move(content));
  logprobs.set("refusal", Json());
  return logprobs;
}

// The reply to one request, whole or in pieces. Lives as long as its generation; called on the engine thread.
class Reply {
 public:
  Reply(const RouteContext& context, const Shape& shape, const CommonFields& fields, std::string id,
        std::shared_ptr<net::Exchange> exchange)
      : model_(context.model),
        shape_(shape),
        fields_(fields),
        exchange_(std::move(exchange)),
        choices_(static_cast<size_t>(fields.n)) {
    envelope_ = Json::object();
    envelope_.set("id", std::move(id));
    envelope_.set("object", fields.stream ? shape.chunk_object : shape.object);
    envelope_.set("created", unix_seconds());
    envelope_.set("model", context.model_id);
    envelope_.set("system_fingerprint", context.fingerprint);
  }

  void delta(const ChoiceDelta& delta) {
    if (!fields_.stream) {
      Whole& whole = choices_[static_cast<size_t>(delta.index)];
      whole.text += delta.text;
      whole.logprobs.insert(whole.logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
      if (!delta.finish_reason.empty()) whole.last = delta;
      return;
    }
    begin();
    Whole& state = choices_[static_cast<size_t>(delta.index)];
    if (shape_.chat && !std::exchange(state.role_sent, true)) {
      Json role = Json::object();
      role.set("role", "assistant");
      role.set("content", "");
      chunk(delta.index, std::move(role), Json(), Json(), Json());
    }
    if (!delta.text.empty() || !delta.logprobs.empty()) {
      Json piece = Json::object();
      piece.set(shape_.chat ? "content" : "text", delta.text);
      chunk(delta.index, std::move(piece), logprobs_of(delta.logprobs), Json(), Json());
    }
    if (delta.finish_reason.empty()) return;
    Json empty = Json::object();
    if (!shape_.chat) empty.set("text", "");
    chunk(delta.index, std::move(empty), Json(), Json(delta.finish_reason), delta.stop_reason);
  }

  void done(const Usage& usage) {
    if (!fields_.stream) {
      exchange_->reply(200, "application/json", whole(usage).dump());
      return;
    }
    begin();
    if (fields_.include_usage) {
      Json last = envelope_;
      last.set("choices", Json::array());
      last.set("usage", usage.to_json());
      exchange_->send(sse(last.dump()));
    }
    exchange_->send(sse_done());
    exchange_->end_stream();
  }

  void error(const ApiError& error) {
    if (!begun_) return send_error(*exchange_, error);
    exchange_->send(sse(error.openai_body()));
    exchange_->send(sse_done());
    exchange_->end_stream();
  }

 private:
  struct Whole {
    std::string text;
    std::vector<TokenLogprobs> logprobs;
    ChoiceDelta last;
    bool role_sent = false;
  };

  // The status line waits for the first token: until then a request can still be refused with its proper status.
  void begin() {
    if (std::exchange(begun_, true)) return;
    exchange_->start_stream(200, kSseType,
                            {{"Cache-Control", "no-cache"},
                             {"X-Accel-Buffering", "no"},
                             {"X-Request-Id", *envelope_.find("id")->as_string()}});
  }

  Json logprobs_of(const std::vector<TokenLogprobs>& tokens) const {
    if (fields_.sampling.top_logprobs < 0) return {};
    if (shape_.chat) return chat_logprobs(model_, tokens);
    Json texts = Json::array(), values = Json::array(), tops = Json::array();
    for (const TokenLogprobs& token : tokens) {
      Json bytes;
      texts.push(token_text(model_, token.token, bytes));
      values.push(static_cast<double>(token.logprob));
      Json& top = tops.push(Json::object());
      for (const auto& other : token.top)
        top.set(model_.tokenizer->token_bytes(other.id), static_cast<double>(other.logprob));
    }
    Json logprobs = Json::object();
    logprobs.set("tokens", std::move(texts));
    logprobs.set("token_logprobs", std::move(values));
    logprobs.set("top_logprobs", std::move(tops));
    return logprobs;
  }

  void chunk(int32_t index, Json piece, Json logprobs, Json finish, Json stop_reason) {
    Json choice = Json::object();
    choice.set("index", index);
    if (shape_.chat)
      choice.set("delta", std::move(piece));
    else
      choice.set("text", *piece.find("text"));
    choice.set("logprobs", std::move(logprobs));
    const bool last = !finish.is_null();
    choice.set("finish_reason", std::move(finish));
    if (last) choice.set("stop_reason", std::move(stop_reason));
    Json out = envelope_;
    out.set("choices", Json::array()).push(std::move(choice));
    if (fields_.include_usage) out.set("usage", Json());
    exchange_->send(sse(out.dump()));
  }

  Json whole(const Usage& usage) {
    Json out = envelope_;
    Json& choices = out.set("choices", Json::array());
    for (size_t i = 0; i < choices_.size(); ++i) {
      Whole& from = choices_[i];
      Json& choice = choices.push(Json::object());
      choice.set("index", static_cast<int>(i));
      if (shape_.chat) {
        Json& message = choice.set("message", Json::object());
        message.set("role", "assistant");
        message.set("content", from.text);
        message.set("refusal", Json());
      } else {
        choice.set("text", from.text);
      }
      choice.set("logprobs", logprobs_of(from.logprobs));
      choice.set("finish_reason", from.last.finish_reason);
      choice.set("stop_reason", from.last.stop_reason);
    }
    out.set("usage", usage.to_json());
    return out;
  }

  const engine::LoadedModel& model_;
  Shape shape_;
  CommonFields fields_;
  std::shared_ptr<net::Exchange> exchange_;
  Json envelope_;
  std::vector<Whole> choices_;
  bool begun_ = false;
};

void run(const RouteContext& context, const Shape& shape, const CommonFields& fields, std::vector<int32_t> prompt,
         std::string id, const std::shared_ptr<net::Exchange>& exchange) {
  const auto n = static_cast<int32_t>(prompt.size());
  if (n >= context.service.max_context())
    return send_error(*exchange,
                      {400,
                       fmt::format("This model's maximum context length is {} tokens, and the prompt has {}: there "
                                   "is no room for an answer.",
                                   context.service.max_context(), n),
                       "invalid_request_error", shape.chat ? "messages" : "prompt", "context_length_exceeded"});
  const auto reply = std::make_shared<Reply>(context, shape, fields, std::move(id), exchange);
  const auto generation = Generation::start(context.model, context.service, std::move(prompt), fields,
                                            {.on_delta = [reply](const ChoiceDelta& delta) { reply->delta(delta); },
                                             .on_done = [reply](const Usage& usage) { reply->done(usage); },
                                             .on_error = [reply](const ApiError& error) { reply->error(error); }});
  exchange->on_gone([weak = std::weak_ptr(generation)] {
    if (const auto alive = weak.lock()) alive->abort();
  });
}

// Fields that belong to work not done yet: refused by name, never ignored.
std::optional<ApiError> refuse_unsupported(const Json& body) {
  for (const char* key : {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs",
                          "regex", "ebnf", "json_schema"})
    if (const Json* value = body.find(key); value != nullptr && !value->is_null())
      return unsupported(key, fmt::format("{}: constrained output is not supported yet", key));
  if (const Json* format = body.find("response_format"); format != nullptr && format->is_object()) {
    const Json* type = format->find("type");
    if (type != nullptr && type->as_string() != nullptr && *type->as_string() != "text")
      return unsupported("response_format",
                         fmt::format("response_format of type '{}' is not supported yet", *type->as_string()));
  }
  return std::nullopt;
}

}  // namespace

void send_error(net::Exchange& exchange, const ApiError& error) {
  net::Headers headers;
  if (error.status == 429 || error.status == 503) headers.emplace_back("Retry-After", "1");
  exchange.reply(error.status, "application/json", error.openai_body(), std::move(headers));
}

void chat_completions(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange,
                      const std::string& request_id) {
  auto fields = read_common(body, context.model.model->info().vocab);
  if (!fields) return send_error(*exchange, fields.error());
  if (const auto error = refuse_unsupported(body)) return send_error(*exchange, *error);
  const auto logprobs = bool_field(body, "logprobs");
  const auto top = integer_field(body, "top_logprobs", 0, sample::kMaxTopLogprobs);
  if (!logprobs) return send_error(*exchange, logprobs.error());
  if (!top) return send_error(*exchange, top.error());
  if (*top && !logprobs->value_or(false))
    return send_error(*exchange, invalid_value("top_logprobs", "top_logprobs needs logprobs: true"));
  if (logprobs->value_or(false)) fields->sampling.top_logprobs = static_cast<int32_t>(top->value_or(0));
  auto conversation = conversation_from_openai(body);
  if (!conversation) return send_error(*exchange, api_error(conversation.error(), "messages"));
  if (!context.model.chat)
    return send_error(*exchange, unsupported("messages", fmt::format("{} cannot chat: {}", context.model_id,
                                                                     context.model.chat_problem)));
  auto chat = context.model.chat->encode(*conversation);
  if (!chat) return send_error(*exchange, api_error(chat.error(), "messages"));
  if (!chat->images.empty())
    return send_error(*exchange, unsupported(chat->images[0].field, fmt::format("{}: images are not supported yet",
                                                                                chat->images[0].field)));
  run(context, kChat, *fields, context.model.tokenizer->encode_spans(chat->spans), request_id, exchange);
}

void completions(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange,
                 const std::string& request_id) {
  auto fields = read_common(body, context.model.model->info().vocab);
  if (!fields) return send_error(*exchange, fields.error());
  if (const auto error = refuse_unsupported(body)) return send_error(*exchange, *error);
  for (const char* key : {"echo", "suffix", "best_of", "prompt_logprobs"})
    if (const Json* value = body.find(key);
        value != nullptr && !value->is_null() && !(value->is_bool() && !*value->as_bool()))
      return send_error(*exchange, unsupported(key, fmt::format("{} is not supported yet", key)));
  const auto logprobs = integer_field(body, "logprobs", 0, sample::kMaxTopLogprobs);
  if (!logprobs) return send_error(*exchange, logprobs.error());
  if (*logprobs) fields->sampling.top_logprobs = static_cast<int32_t>(**logprobs);
  if (!fields->max_tokens) fields->max_tokens = 16;  // the API's default
  const Json* prompt = body.find("prompt");
  if (prompt == nullptr || prompt->is_null()) return send_error(*exchange, missing("prompt"));
  std::vector<int32_t> ids;
  if (prompt->is_string()) {
    ids = context.model.tokenizer->encode(*prompt->as_string(), {.add_special = true, .parse_special = true});
  } else if (prompt->is_array() && !prompt->items().empty() && prompt->items()[0].is_number()) {
    const int32_t vocab = context.model.model->info().vocab;
    for (const Json& item : prompt->items()) {
      const auto id = item.as_int();
      if (!id || *id < 0 || *id >= vocab)
        return send_error(*exchange,
                          invalid_value("prompt", fmt::format("prompt has token id {}, the vocabulary is 0..{}",
                                                              item.dump(), vocab - 1)));
      ids.push_back(static_cast<int32_t>(*id));
    }
  } else {
    return send_error(*exchange, invalid_type("prompt", "a string or a list of token ids", *prompt));
  }
  if (ids.empty() && context.model.tokenizer->bos_id()) ids.push_back(*context.model.tokenizer->bos_id());
  if (ids.empty()) return send_error(*exchange, invalid_value("prompt", "the prompt is empty"));
  run(context, kText, *fields, std::move(ids), request_id, exchange);
}

}  // namespace gannet::server
