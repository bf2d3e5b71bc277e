// /v1/chat/completions and /v1/completions, and what all generating routes share.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "engine/loaded_model.h"
#include "engine/service.h"
#include "net/http_server.h"
#include "server/generation.h"
#include "server/sampling_fields.h"

namespace gannet::server {

// What a route needs of the server.
struct RouteContext {
  const engine::LoadedModel& model;
  engine::Service& service;
  std::string model_id;     // the name clients use
  std::string fingerprint;  // system_fingerprint
  std::chrono::steady_clock::time_point arrived;
  std::string request_id;  // with the prefix of its protocol
  GenerationObserver* observer = nullptr;
};

// Each answers through the exchange, now or later. Bad requests are answered at once; nothing is lost.
void chat_completions(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange);
void completions(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange);

// /tokenize (`to_ids`) and /detokenize.
void tokens(const RouteContext& context, bool to_ids, const Json& body, std::shared_ptr<net::Exchange> exchange);

void send_error(net::Exchange& exchange, const ApiError& error);

// Renders and tokenizes a conversation into the one prompt of `request`, and says how its answer is read.
std::optional<ApiError> set_chat(const RouteContext& context, const Conversation& conversation,
                                 GenerationRequest& request);

// A prompt that leaves no room for an answer is refused with both counts; `param` is where it came from.
std::optional<ApiError> check_context(const RouteContext& context, const GenerationRequest& request,
                                      std::string param);

// Starts the generation and ties it to the client's presence.
void run(const RouteContext& context, GenerationRequest request, std::shared_ptr<ReplySink> sink,
         const std::shared_ptr<net::Exchange>& exchange);

int64_t unix_seconds();
Json timings_json(const Usage& usage, const Timings& timings);
std::string_view finish_name(Finish finish);  // "stop", "length", "tool_calls"

}  // namespace gannet::server
