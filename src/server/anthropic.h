// /v1/messages and /v1/messages/count_tokens.
#pragma once

#include <memory>
#include <string>

#include "server/openai.h"

namespace gannet::server {

void messages(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange);
// Renders and tokenizes only: {"input_tokens": N}.
void count_tokens(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange);

// {"type":"error","error":{"type","message"},"request_id"}, with the protocol's status for overload (529).
void send_anthropic_error(net::Exchange& exchange, const ApiError& error, const std::string& request_id);

}  // namespace gannet::server
