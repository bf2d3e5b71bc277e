// Bodies of /v1/messages as chat bodies of the OpenAI shape, which text/chat_openai reads. Nothing here knows a
// model.
#pragma once

#include "server/sampling_fields.h"

namespace gannet::server {

// The messages, tools, tool choice and thinking of an Anthropic body, checked, as an OpenAI chat body. Errors name
// the field of the Anthropic body (`messages[2].content[0].source`).
ApiResult<Json> chat_body_from_anthropic(const Json& body);

// Sampling, limits and stop sequences of an Anthropic body.
ApiResult<CommonFields> read_anthropic_fields(const Json& body, int32_t vocab);

}  // namespace gannet::server
