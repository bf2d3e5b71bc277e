// Errors as HTTP clients see them, in the two shapes that clients parse.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace gannet::server {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // empty: null
  std::string code;   // empty: null

  // {"error":{"message","type","param","code"}}
  std::string openai_body() const;
};

// 400 for what the client can mend, 503 where there is no room, 500 for the rest.
ApiError api_error(const Error& error, std::string param = "");

ApiError invalid_value(std::string param, std::string message);
ApiError invalid_type(std::string param, std::string_view wanted, const Json& got);
ApiError missing(std::string param);
ApiError unsupported(std::string param, std::string message);

// A value or the error to answer with.
template <class T>
using ApiResult = tl::expected<T, ApiError>;

}  // namespace gannet::server
