// Server-sent events as OpenAI clients read them.
#pragma once

#include <string>

namespace gannet::server {

inline constexpr const char* kSseType = "text/event-stream; charset=utf-8";
inline std::string sse(const std::string& json) { return "data: " + json + "\n\n"; }
inline std::string sse_done() { return "data: [DONE]\n\n"; }

}  // namespace gannet::server
