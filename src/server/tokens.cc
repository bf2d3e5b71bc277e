// /tokenize and /detokenize.
#include <fmt/format.h>

#include "server/openai.h"
#include "text/chat_openai.h"

namespace gannet::server {
namespace {

void tokenize(const RouteContext& context, const Json& body, net::Exchange& exchange) {
  std::vector<int32_t> ids;
  const Json* prompt = body.find("prompt");
  const auto add_special = bool_field(body, "add_special_tokens");
  if (!add_special) return send_error(exchange, add_special.error());
  if (prompt != nullptr && !prompt->is_null()) {
    if (!prompt->is_string()) return send_error(exchange, invalid_type("prompt", "a string", *prompt));
    ids = context.model.tokenizer->encode(*prompt->as_string(),
                                          {.add_special = add_special->value_or(true), .parse_special = true});
  } else if (body.find("messages") != nullptr) {
    auto conversation = conversation_from_openai(body);
    if (!conversation) return send_error(exchange, api_error(conversation.error(), "messages"));
    if (!context.model.chat) return send_error(exchange, unsupported("messages", context.model.chat_problem));
    const auto chat = context.model.chat->encode(*conversation);
    if (!chat) return send_error(exchange, api_error(chat.error(), "messages"));
    ids = context.model.tokenizer->encode_spans(chat->spans);
  } else {
    return send_error(exchange, missing("prompt"));
  }
  Json tokens = Json::array();
  for (const int32_t id : ids) tokens.push(id);
  Json out = Json::object();
  out.set("count", static_cast<int64_t>(ids.size()));
  out.set("max_model_len", context.service.max_context());
  out.set("tokens", std::move(tokens));
  exchange.reply(200, "application/json", out.dump());
}

void detokenize(const RouteContext& context, const Json& body, net::Exchange& exchange) {
  const Json* tokens = body.find("tokens");
  if (tokens == nullptr || tokens->is_null()) return send_error(exchange, missing("tokens"));
  if (!tokens->is_array()) return send_error(exchange, invalid_type("tokens", "a list of token ids", *tokens));
  std::vector<int32_t> ids;
  for (const Json& item : tokens->items()) {
    const auto id = item.as_int();
    if (!id) return send_error(exchange, invalid_type("tokens", "a list of token ids", item));
    if (*id < 0 || *id > INT32_MAX || !context.model.tokenizer->has_token(static_cast<int32_t>(*id)))
      return send_error(exchange, invalid_value("tokens", fmt::format("there is no token {}", *id)));
    ids.push_back(static_cast<int32_t>(*id));
  }
  Json out = Json::object();
  out.set("prompt", context.model.tokenizer->decode(ids, false));
  exchange.reply(200, "application/json", out.dump());
}

}  // namespace

void tokens(const RouteContext& context, bool to_ids, const Json& body, std::shared_ptr<net::Exchange> exchange) {
  if (to_ids)
    tokenize(context, body, *exchange);
  else
    detokenize(context, body, *exchange);
}

}  // namespace gannet::server
