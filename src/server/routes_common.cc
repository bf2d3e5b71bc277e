// What all generating routes share.
#include <fmt/format.h>

#include "server/openai.h"

namespace gannet::server {

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string_view finish_name(Finish finish) {
  switch (finish) {
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::tool_calls:
      return "tool_calls";
  }
  return "stop";
}

Json timings_json(const Usage& usage, const Timings& timings) {
  const auto ms = [](int64_t us) { return Json(static_cast<double>(us) / 1000.0); };
  const int64_t first = timings.first_token_us < 0 ? timings.total_us : timings.first_token_us;
  const int64_t decode = timings.total_us - first;
  Json out = Json::object();
  out.set("tokenize_ms", ms(timings.tokenize_us));
  out.set("queue_ms", ms(timings.queue_us));
  out.set("prefill_ms", ms(std::max<int64_t>(0, first - timings.tokenize_us - timings.queue_us)));
  out.set("first_token_ms", ms(first));
  out.set("decode_ms", ms(decode));
  out.set("total_ms", ms(timings.total_us));
  out.set("prompt_tokens", usage.prompt_tokens);
  out.set("cached_tokens", usage.cached_tokens);
  out.set("completion_tokens", usage.completion_tokens);
  out.set("decode_tokens_per_second",
          decode > 0 ? Json(1e6 * std::max(0, usage.completion_tokens - 1) / static_cast<double>(decode)) : Json());
  return out;
}

void send_error(net::Exchange& exchange, const ApiError& error) {
  net::Headers headers;
  if (error.status == 429 || error.status == 503) headers.emplace_back("Retry-After", "1");
  exchange.reply(error.status, "application/json", error.openai_body() + "\n", std::move(headers));
}

std::optional<ApiError> set_chat(const RouteContext& context, const Conversation& conversation,
                                 GenerationRequest& request) {
  const engine::LoadedModel& model = context.model;
  if (!model.chat)
    return unsupported("messages", fmt::format("{} cannot chat: {}", context.model_id, model.chat_problem));
  auto chat = model.chat->encode(conversation);
  if (!chat) return api_error(chat.error(), "messages");
  if (!chat->images.empty())
    return unsupported(chat->images[0].field,
                       fmt::format("{}: images are not supported yet", chat->images[0].field));
  request.prompts = {model.tokenizer->encode_spans(chat->spans)};
  const bool continues = !conversation.messages.empty() && conversation.messages.back().open;
  request.output = OutputSpec{model.output_format, chat->start, continues, conversation.tools, true};
  return std::nullopt;
}

std::optional<ApiError> check_context(const RouteContext& context, const GenerationRequest& request,
                                      std::string param) {
  const int32_t longest = context.service.max_context();
  for (const auto& prompt : request.prompts) {
    if (static_cast<int64_t>(prompt.size()) < longest) continue;
    return ApiError{400,
                    fmt::format("This model's maximum context length is {} tokens. However, the prompt has {} "
                                "tokens, which leaves no room for an answer. Please reduce the length of the {}.",
                                longest, prompt.size(), param),
                    "invalid_request_error", std::move(param), "context_length_exceeded"};
  }
  return std::nullopt;
}

void run(const RouteContext& context, GenerationRequest request, std::shared_ptr<ReplySink> sink,
         const std::shared_ptr<net::Exchange>& exchange) {
  request.id = context.request_id;
  const auto generation = Generation::start(context.model, context.service, std::move(request), std::move(sink),
                                            context.arrived, context.observer);
  exchange->on_gone([weak = std::weak_ptr(generation)] {
    if (const auto alive = weak.lock()) alive->abort();
  });
}

}  // namespace gannet::server
