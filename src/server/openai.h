// /v1/chat/completions and /v1/completions: requests read, replies written, streamed or not.
#pragma once

#include <memory>
#include <string>

#include "engine/loaded_model.h"
#include "engine/service.h"
#include "net/http_server.h"
#include "server/generation.h"

namespace gannet::server {

// What a route needs of the server.
struct RouteContext {
  const engine::LoadedModel& model;
  engine::Service& service;
  std::string model_id;     // the name clients use
  std::string fingerprint;  // system_fingerprint
};

// Each answers through the exchange, now or later. Bad requests are answered at once; nothing is lost.
void chat_completions(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange,
                      const std::string& request_id);
void completions(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange,
                 const std::string& request_id);

// /tokenize (`to_ids`) and /detokenize.
void tokens(const RouteContext& context, bool to_ids, const Json& body, std::shared_ptr<net::Exchange> exchange);

void send_error(net::Exchange& exchange, const ApiError& error);

}  // namespace gannet::server
