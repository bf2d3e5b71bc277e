#include "server/anthropic.h"

#include <fmt/format.h>

#include "server/anthropic_request.h"
#include "server/field_table.h"
#include "server/reply_collector.h"
#include "server/sse.h"
#include "text/chat_openai.h"

namespace gannet::server {
namespace {

const char* error_type(const ApiError& error) {
  switch (error.status) {
    case 400:
    case 405:
    case 422:
      return "invalid_request_error";
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return "api_error";
  }
}

Json error_json(const ApiError& error, const std::string& request_id) {
  Json inner = Json::object();
  inner.set("type", error_type(error));
  inner.set("message", error.message);
  Json out = Json::object();
  out.set("type", "error");
  out.set("error", std::move(inner));
  out.set("request_id", request_id);
  return out;
}

const char* stop_reason_of(Finish finish, const Json& stop) {
  switch (finish) {
    case Finish::length:
      return "max_tokens";
    case Finish::tool_calls:
      return "tool_use";
    case Finish::stop:
      return stop.is_string() ? "stop_sequence" : "end_turn";
  }
  return "end_turn";
}

// input_tokens leaves out what came from the cache: that is how the protocol counts.
Json usage_json(const Usage& usage) {
  Json out = Json::object();
  out.set("input_tokens", usage.prompt_tokens - usage.cached_tokens);
  out.set("cache_creation_input_tokens", 0);
  out.set("cache_read_input_tokens", usage.cached_tokens);
  out.set("output_tokens", usage.completion_tokens);
  return out;
}

// The reply to one request: blocks one after the other, each opened, filled and closed.
class AnthropicReply final : public ReplySink {
 public:
  AnthropicReply(const RouteContext& context, const CommonFields& fields, std::string id,
                 std::shared_ptr<net::Exchange> exchange)
      : model_id_(context.model_id),
        id_(std::move(id)),
        stream_(fields.stream),
        timings_(fields.timings),
        prompt_tokens_(static_cast<int32_t>(fields.generation.prompts[0].size())),
        exchange_(std::move(exchange)) {}

  void event(const ReplyEvent& event) override {
    if (event.kind == ReplyEvent::Kind::finish) {
      finish_ = event.finish;
      stop_ = event.stop_reason;
    }
    if (!stream_) return collector_.add(event);
    begin();
    switch (event.kind) {
      case ReplyEvent::Kind::content:
        open(event.kind, R"({"type":"text","text":""})");
        return delta("text_delta", "text", event.text);
      case ReplyEvent::Kind::reasoning:
        open(event.kind, R"({"type":"thinking","thinking":"","signature":""})");
        return delta("thinking_delta", "thinking", event.text);
      case ReplyEvent::Kind::tool_begin:
        close();
        return open(event.kind, fmt::format(R"({{"type":"tool_use","id":"toolu_{}","name":{},"input":{{}}}})",
                                            event.tool_id, json_text(full_name(event.name_space, event.name))));
      case ReplyEvent::Kind::tool_args:
        return delta("input_json_delta", "partial_json", event.text);
      case ReplyEvent::Kind::tool_end:
        return close();
      case ReplyEvent::Kind::finish:
        if (n_blocks_ == 0) open(ReplyEvent::Kind::content, R"({"type":"text","text":""})");
        return close();
    }
  }

  void flush() override {
    if (out_.empty()) return;
    if (!std::exchange(begun_, true)) {
      net::Headers headers = stream_headers(id_);
      headers.emplace_back("request-id", id_);
      exchange_->start_stream(200, kSseType, std::move(headers));
    }
    exchange_->send(std::exchange(out_, {}));
  }

  void done(const Usage& usage, const Timings& timings) override {
    if (!stream_)
      return exchange_->reply(200, "application/json", whole(usage, timings).dump(), {{"request-id", id_}});
    Json delta = Json::object();
    delta.set("stop_reason", stop_reason_of(finish_, stop_));
    delta.set("stop_sequence", stop_.is_string() ? stop_ : Json());
    Json last = Json::object();
    last.set("type", "message_delta");
    last.set("delta", std::move(delta));
    last.set("usage", usage_json(usage));
    if (timings_) last.set("timings", timings_json(usage, timings));
    put("message_delta", last.dump());
    put("message_stop", R"({"type":"message_stop"})");
    flush();
    exchange_->end_stream();
  }

  void error(const ApiError& error) override {
    if (!begun_) return send_anthropic_error(*exchange_, error, id_);
    put("error", error_json(error, id_).dump());
    flush();
    exchange_->end_stream();
  }

 private:
  static std::string full_name(const std::string& space, const std::string& name) {
    return space.empty() ? name : space + "::" + name;
  }

  void put(std::string_view name, std::string_view data) {
    fmt::format_to(std::back_inserter(out_), "event: {}\ndata: {}\n\n", name, data);
  }

  Json message(Json content, Json usage) const {
    Json out = Json::object();
    out.set("id", id_);
    out.set("type", "message");
    out.set("role", "assistant");
    out.set("model", model_id_);
    out.set("content", std::move(content));
    out.set("stop_reason", Json());
    out.set("stop_sequence", Json());
    out.set("usage", std::move(usage));
    return out;
  }

  void begin() {
    if (std::exchange(started_, true)) return;
    Json start = Json::object();
    start.set("type", "message_start");
    start.set("message", message(Json::array(), usage_json({.prompt_tokens = prompt_tokens_})));
    put("message_start", start.dump());
    put("ping", R"({"type":"ping"})");
  }

  void open(ReplyEvent::Kind kind, std::string_view block) {
    if (open_ && kind_ == kind && kind != ReplyEvent::Kind::tool_begin) return;
    close();
    kind_ = kind;
    open_ = true;
    put("content_block_start",
        fmt::format(R"({{"type":"content_block_start","index":{},"content_block":{}}})", n_blocks_++, block));
  }

  void delta(std::string_view type, std::string_view key, std::string_view text) {
    put("content_block_delta",
        fmt::format(R"({{"type":"content_block_delta","index":{},"delta":{{"type":"{}","{}":{}}}}})", n_blocks_ - 1,
                    type, key, json_text(text)));
  }

  void close() {
    if (!std::exchange(open_, false)) return;
    put("content_block_stop", fmt::format(R"({{"type":"content_block_stop","index":{}}})", n_blocks_ - 1));
  }

  Json whole(const Usage& usage, const Timings& timings) {
    const WholeChoice choice = collector_.take()[0];
    Json content = Json::array();
    const auto block = [&](const char* type, const char* key, const std::string& text) -> Json& {
      Json& out = content.push(Json::object());
      out.set("type", type);
      out.set(key, text);
      return out;
    };
    if (!choice.reasoning.empty()) block("thinking", "thinking", choice.reasoning).set("signature", "");
    if (!choice.content.empty() || (choice.calls.empty() && choice.reasoning.empty()))
      block("text", "text", choice.content);
    for (const WholeCall& call : choice.calls) {
      Json& out = block("tool_use", "id", "toolu_" + call.id);
      out.set("name", full_name(call.name_space, call.name));
      auto input = Json::parse(call.arguments);
      out.set("input", input ? std::move(*input) : Json::object());
    }
    Json out = message(std::move(content), usage_json(usage));
    out.set("stop_reason", stop_reason_of(choice.finish, choice.stop_reason));
    if (choice.stop_reason.is_string()) out.set("stop_sequence", choice.stop_reason);
    if (timings_) out.set("timings", timings_json(usage, timings));
    return out;
  }

  std::string model_id_, id_;
  bool stream_, timings_;
  int32_t prompt_tokens_;
  std::shared_ptr<net::Exchange> exchange_;
  ReplyCollector collector_{1};
  std::string out_;
  ReplyEvent::Kind kind_ = ReplyEvent::Kind::content;  // of the open block
  int32_t n_blocks_ = 0;
  bool started_ = false, begun_ = false, open_ = false;
  Finish finish_ = Finish::stop;
  Json stop_;
};

// Reads what both routes share: the conversation, as the prompt of `request`.
std::optional<ApiError> read_conversation(const RouteContext& context, const Json& body,
                                          GenerationRequest& request) {
  if (auto error = refuse_constraints(body)) return error;
  const auto chat_body = chat_body_from_anthropic(body);
  if (!chat_body) return chat_body.error();
  const auto conversation = conversation_from_openai(*chat_body);
  if (!conversation) return api_error(conversation.error(), "messages");
  if (auto error = set_chat(context, *conversation, request)) return error;
  request.output->parallel_calls = chat_body->find("parallel_tool_calls") == nullptr;
  return std::nullopt;
}

}  // namespace

void send_anthropic_error(net::Exchange& exchange, const ApiError& error, const std::string& request_id) {
  net::Headers headers{{"request-id", request_id}};
  const int status = error.status == 503 ? 529 : error.status;
  if (status == 429 || status == 529) headers.emplace_back("Retry-After", "1");
  exchange.reply(status, "application/json", error_json(error, request_id).dump() + "\n", std::move(headers));
}

void messages(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange) {
  auto fields = read_anthropic_fields(body, context.model.model->info().vocab);
  if (!fields) return send_anthropic_error(*exchange, fields.error(), context.request_id);
  auto error = read_conversation(context, body, fields->generation);
  if (!error) error = check_context(context, fields->generation, "messages");
  if (error && error->code == "context_length_exceeded")  // clients look for these words
    error->message = fmt::format("prompt is too long: {} tokens > {} maximum", fields->generation.prompts[0].size(),
                                 context.service.max_context() - 1);
  if (error) return send_anthropic_error(*exchange, *error, context.request_id);
  auto sink = std::make_shared<AnthropicReply>(context, *fields, context.request_id, exchange);
  run(context, std::move(fields->generation), std::move(sink), exchange);
}

void count_tokens(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange) {
  GenerationRequest request;
  if (const auto error = read_conversation(context, body, request))
    return send_anthropic_error(*exchange, *error, "");
  Json out = Json::object();
  out.set("input_tokens", static_cast<int64_t>(request.prompts[0].size()));
  exchange->reply(200, "application/json", out.dump());
}

}  // namespace gannet::server
