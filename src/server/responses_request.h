// Bodies of /v1/responses as chat bodies of the OpenAI shape, which text/chat_openai reads.
#pragma once

#include <set>
#include <string>

#include "server/sampling_fields.h"

namespace gannet::server {

struct ResponsesRequest {
  CommonFields fields;
  Json chat;                           // messages, tools, tool_choice, reasoning_effort
  std::set<std::string> custom_tools;  // names whose calls are text, not JSON
  bool parallel_calls = true;
  bool encrypted_reasoning = false;  // give reasoning back in a form that a stateless client can return
  bool summary = false;              // reasoning is shown as a summary too
};

// Errors name the field of the Responses body (`input[2].call_id`).
ApiResult<ResponsesRequest> read_responses(const Json& body, int32_t vocab);

}  // namespace gannet::server
