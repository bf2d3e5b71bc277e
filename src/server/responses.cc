#include "server/responses.h"

#include <fmt/format.h>

#include "server/field_table.h"
#include "server/responses_request.h"
#include "server/sse.h"
#include "text/chat_openai.h"

namespace gannet::server {
namespace {

Json usage_json(const Usage& usage) {
  Json cached = Json::object();
  cached.set("cached_tokens", usage.cached_tokens);
  Json reasoning = Json::object();
  reasoning.set("reasoning_tokens", usage.reasoning_tokens);
  Json out = Json::object();
  out.set("input_tokens", usage.prompt_tokens);
  out.set("input_tokens_details", std::move(cached));
  out.set("output_tokens", usage.completion_tokens);
  out.set("output_tokens_details", std::move(reasoning));
  out.set("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  return out;
}

// What the response object says back of the request.
Json response_front(const RouteContext& context, const Json& body, const std::string& id) {
  const auto given = [&](const char* key, Json absent) {
    const Json* value = present(body, key);
    return value == nullptr ? std::move(absent) : *value;
  };
  Json out = Json::object();
  out.set("id", id);
  out.set("object", "response");
  out.set("created_at", unix_seconds());
  out.set("status", "in_progress");
  out.set("error", Json());
  out.set("incomplete_details", Json());
  out.set("instructions", given("instructions", Json()));
  out.set("max_output_tokens", given("max_output_tokens", Json()));
  out.set("model", context.model_id);
  out.set("output", Json::array());
  out.set("parallel_tool_calls", given("parallel_tool_calls", Json(true)));
  out.set("previous_response_id", Json());
  Json reasoning = Json::object();
  reasoning.set("effort", Json());
  reasoning.set("summary", Json());
  out.set("reasoning", given("reasoning", std::move(reasoning)));
  out.set("store", false);
  out.set("temperature", given("temperature", Json(1.0)));
  out.set("text", given("text", *Json::parse(R"({"format":{"type":"text"}})")));
  out.set("tool_choice", given("tool_choice", Json("auto")));
  out.set("tools", given("tools", Json::array()));
  out.set("top_p", given("top_p", Json(1.0)));
  out.set("truncation", "disabled");
  out.set("usage", Json());
  out.set("user", given("user", Json()));
  out.set("metadata", given("metadata", Json::object()));
  return out;
}

// The reply to one request. Items are made as events come; a stream shows each step, an unstreamed reply the end.
class ResponsesReply final : public ReplySink {
 public:
  ResponsesReply(ResponsesRequest request, Json response, std::string id, std::shared_ptr<net::Exchange> exchange)
      : request_(std::move(request)),
        response_(std::move(response)),
        id_(std::move(id)),
        exchange_(std::move(exchange)) {}

  void event(const ReplyEvent& event) override {
    begin();
    switch (event.kind) {
      case ReplyEvent::Kind::reasoning:
      case ReplyEvent::Kind::content:
        return text(event);
      case ReplyEvent::Kind::tool_begin:
        close("incomplete");
        return begin_call(event);
      case ReplyEvent::Kind::tool_args:
        text_ += event.text;
        if (!custom_) call_delta("response.function_call_arguments.delta", event.text);
        return;
      case ReplyEvent::Kind::tool_end:
        return close("completed");
      case ReplyEvent::Kind::finish:
        finish_ = event.finish;
        return close(event.finish == Finish::length ? "incomplete" : "completed");
    }
  }

  void flush() override {
    if (!request_.fields.stream || out_.empty()) return;
    if (!std::exchange(sent_, true)) exchange_->start_stream(200, kSseType, stream_headers(id_));
    exchange_->send(std::exchange(out_, {}));
  }

  void done(const Usage& usage, const Timings& timings) override {
    const bool cut = finish_ == Finish::length;
    response_.set("status", cut ? "incomplete" : "completed");
    response_.set("completed_at", unix_seconds());
    if (cut) response_.set("incomplete_details", *Json::parse(R"({"reason":"max_output_tokens"})"));
    response_.set("output", std::move(items_));
    response_.set("usage", usage_json(usage));
    if (request_.fields.timings) response_.set("timings", timings_json(usage, timings));
    if (!request_.fields.stream)
      return exchange_->reply(200, "application/json", response_.dump(), {{"X-Request-Id", id_}});
    put_response(cut ? "response.incomplete" : "response.completed");
    flush();
    exchange_->end_stream();
  }

  void error(const ApiError& error) override {
    if (!sent_) return send_error(*exchange_, error);
    Json failure = Json::object();
    failure.set("code", error.code.empty() ? "server_error" : error.code);
    failure.set("message", error.message);
    response_.set("status", "failed");
    response_.set("error", std::move(failure));
    response_.set("output", std::move(items_));
    put_response("response.failed");
    flush();
    exchange_->end_stream();
  }

 private:
  enum class Open : uint8_t { none, reasoning, message, call };

  // `fields` is the inside of an object: "\"key\":value,...".
  void put(std::string_view type, std::string_view fields) {
    if (!request_.fields.stream) return;
    fmt::format_to(std::back_inserter(out_),
                   "event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},{2}}}\n\n", type, sequence_++,
                   fields);
  }
  void put_response(std::string_view type) { put(type, "\"response\":" + response_.dump()); }
  int64_t output_index() const { return static_cast<int64_t>(items_.items().size()); }
  std::string place() const {
    return fmt::format("\"item_id\":\"{}\",\"output_index\":{},\"content_index\":0", item_id_, output_index());
  }

  void begin() {
    if (std::exchange(begun_, true)) return;
    put_response("response.created");
    put_response("response.in_progress");
  }

  std::string new_item(const char* prefix) const {
    return fmt::format("{}{}_{}", prefix, id_.substr(id_.find('_') + 1), output_index());
  }

  void open_item(Open open, Json item) {
    open_ = open;
    item_id_ = *item.find("id")->as_string();
    text_.clear();
    put("response.output_item.added", fmt::format("\"output_index\":{},\"item\":{}", output_index(), item.dump()));
    item_ = std::move(item);
  }

  static Json part(bool reasoning, std::string text) {
    Json out = Json::object();
    out.set("type", reasoning ? "reasoning_text" : "output_text");
    out.set("text", std::move(text));
    if (reasoning) return out;
    out.set("annotations", Json::array());
    out.set("logprobs", Json::array());
    return out;
  }

  void text(const ReplyEvent& event) {
    const bool reasoning = event.kind == ReplyEvent::Kind::reasoning;
    const Open wanted = reasoning ? Open::reasoning : Open::message;
    if (open_ != wanted) {
      close("completed");
      Json item = Json::object();
      item.set("id", new_item(reasoning ? "rs_" : "msg_"));
      item.set("type", reasoning ? "reasoning" : "message");
      if (reasoning) item.set("summary", Json::array());
      item.set("status", "in_progress");
      if (!reasoning) item.set("role", "assistant");
      item.set("content", Json::array());
      open_item(wanted, std::move(item));
      put("response.content_part.added", place() + ",\"part\":" + part(reasoning, "").dump());
    }
    text_ += event.text;
    if (!request_.fields.stream) return;
    put(reasoning ? "response.reasoning_text.delta" : "response.output_text.delta",
        fmt::format("{},\"delta\":{}{}", place(), json_text(event.text), reasoning ? "" : ",\"logprobs\":[]"));
  }

  void begin_call(const ReplyEvent& event) {
    custom_ = request_.custom_tools.contains(event.name);
    Json item = Json::object();
    item.set("id", new_item(custom_ ? "ctc_" : "fc_"));
    item.set("type", custom_ ? "custom_tool_call" : "function_call");
    item.set("call_id", "call_" + event.tool_id);
    item.set("name", event.name);
    if (!event.name_space.empty()) item.set("namespace", event.name_space);
    item.set(custom_ ? "input" : "arguments", "");
    item.set("status", "in_progress");
    open_item(Open::call, std::move(item));
  }

  void call_delta(std::string_view type, const std::string& delta) {
    put(type, fmt::format("\"item_id\":\"{}\",\"output_index\":{},\"delta\":{}", item_id_, output_index(),
                          json_text(delta)));
  }

  void close(const char* status) {
    const Open was = std::exchange(open_, Open::none);
    if (was == Open::none) return;
    // A call that was cut must not be run: it is no item of the final response.
    if (was == Open::call && std::string_view(status) == "incomplete" && !request_.fields.stream) return;
    item_.set("status", status);
    if (was == Open::call)
      close_call();
    else
      close_text(was == Open::reasoning);
    put("response.output_item.done", fmt::format("\"output_index\":{},\"item\":{}", output_index(), item_.dump()));
    items_.push(std::move(item_));
  }

  void close_text(bool reasoning) {
    const Json whole = part(reasoning, text_);
    put(reasoning ? "response.reasoning_text.done" : "response.output_text.done",
        fmt::format("{},\"text\":{}{}", place(), json_text(text_), reasoning ? "" : ",\"logprobs\":[]"));
    put("response.content_part.done", place() + ",\"part\":" + whole.dump());
    Json content = Json::array();
    content.push(whole);
    item_.set("content", std::move(content));
    if (!reasoning) return;
    if (request_.encrypted_reasoning) item_.set("encrypted_content", "gannet1:" + text_);
    if (request_.summary) close_summary();
  }

  // There is no summary of its own: what was asked for as one is the reasoning.
  void close_summary() {
    const std::string where =
        fmt::format("\"item_id\":\"{}\",\"output_index\":{},\"summary_index\":0", item_id_, output_index());
    Json entry = Json::object();
    entry.set("type", "summary_text");
    entry.set("text", text_);
    put("response.reasoning_summary_part.added", where + R"(,"part":{"type":"summary_text","text":""})");
    put("response.reasoning_summary_text.delta", where + ",\"delta\":" + json_text(text_));
    put("response.reasoning_summary_text.done", where + ",\"text\":" + json_text(text_));
    put("response.reasoning_summary_part.done", where + ",\"part\":" + entry.dump());
    Json summary = Json::array();
    summary.push(std::move(entry));
    item_.set("summary", std::move(summary));
  }

  void close_call() {
    if (!custom_) {
      item_.set("arguments", text_);
      put("response.function_call_arguments.done",
          fmt::format("\"item_id\":\"{}\",\"output_index\":{},\"name\":{},\"arguments\":{}", item_id_,
                      output_index(), item_.find("name")->dump(), json_text(text_)));
      return;
    }
    std::string input = text_;
    if (const auto wrapped = Json::parse(text_); wrapped && wrapped->is_object())
      if (const Json* value = wrapped->find("input"); value != nullptr && value->as_string() != nullptr)
        input = *value->as_string();
    item_.set("input", input);
    call_delta("response.custom_tool_call_input.delta", input);
    put("response.custom_tool_call_input.done", fmt::format("\"item_id\":\"{}\",\"output_index\":{},\"input\":{}",
                                                            item_id_, output_index(), json_text(input)));
  }

  ResponsesRequest request_;
  Json response_;
  std::string id_;
  std::shared_ptr<net::Exchange> exchange_;
  Json items_ = Json::array(), item_;
  std::string item_id_, text_, out_;
  Open open_ = Open::none;
  bool custom_ = false, begun_ = false, sent_ = false;
  int64_t sequence_ = 0;
  Finish finish_ = Finish::stop;
};

}  // namespace

void responses(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange) {
  if (const auto error = refuse_constraints(body)) return send_error(*exchange, *error);
  auto request = read_responses(body, context.model.model->info().vocab);
  if (!request) return send_error(*exchange, request.error());
  const auto conversation = conversation_from_openai(request->chat);
  if (!conversation) return send_error(*exchange, api_error(conversation.error(), "input"));
  GenerationRequest generation = std::move(request->fields.generation);
  auto error = set_chat(context, *conversation, generation);
  if (!error) error = check_context(context, generation, "input");
  if (error) return send_error(*exchange, *error);
  generation.output->parallel_calls = request->parallel_calls;
  auto sink = std::make_shared<ResponsesReply>(
      std::move(*request), response_front(context, body, context.request_id), context.request_id, exchange);
  run(context, std::move(generation), std::move(sink), exchange);
}

}  // namespace gannet::server
