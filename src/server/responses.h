// /v1/responses, stateless: nothing is stored.
#pragma once

#include <memory>
#include <string>

#include "server/openai.h"

namespace gannet::server {

void responses(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange);

}  // namespace gannet::server
