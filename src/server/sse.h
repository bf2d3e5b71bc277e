// Server-sent events as OpenAI clients read them.
#pragma once

#include <string>

#include "base/json.h"
#include "net/http_server.h"

namespace gannet::server {

inline constexpr const char* kSseType = "text/event-stream; charset=utf-8";
inline std::string sse(const std::string& json) { return "data: " + json + "\n\n"; }
inline std::string sse_done() { return "data: [DONE]\n\n"; }
// A JSON string with its quotes.
inline std::string json_text(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}
// Of every stream: nothing in between may keep events back.
inline net::Headers stream_headers(std::string request_id) {
  return {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}, {"X-Request-Id", std::move(request_id)}};
}

}  // namespace gannet::server
