#include "server/api_error.h"

#include <fmt/format.h>

namespace gannet::server {

std::string ApiError::openai_body() const {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json error = Json::object();
  error.set("message", message);
  error.set("type", type);
  error.set("param", text_or_null(param));
  error.set("code", text_or_null(code));
  Json body = Json::object();
  body.set("error", std::move(error));
  return body.dump();
}

ApiError api_error(const Error& error, std::string param) {
  ApiError out;
  out.message = error.message;
  out.param = std::move(param);
  switch (error.code) {
    case Errc::bad_request:
      out.code = "invalid_value";
      break;
    case Errc::unsupported:
      out.code = "unsupported_value";
      break;
    case Errc::no_capacity:
      out.code = "context_length_exceeded";
      break;
    case Errc::not_found:
      out.status = 404;
      break;
    default:
      out.status = 500;
      out.type = "server_error";
      out.code = "internal_error";
  }
  return out;
}

ApiError invalid_value(std::string param, std::string message) {
  return {400, std::move(message), "invalid_request_error", std::move(param), "invalid_value"};
}

ApiError invalid_type(std::string param, std::string_view wanted, const Json& got) {
  std::string shown = got.dump();
  if (shown.size() > 60)
    shown = shown.substr(0, 57) + "...";  // a character cut in two is mended by the JSON writer
  std::string message = fmt::format("{} must be {}, got {}", param, wanted, shown);
  return {400, std::move(message), "invalid_request_error", std::move(param), "invalid_type"};
}

ApiError missing(std::string param) {
  std::string message = fmt::format("{} is required", param);
  return {400, std::move(message), "invalid_request_error", std::move(param), "missing_required_parameter"};
}

ApiError unsupported(std::string param, std::string message) {
  return {400, std::move(message), "invalid_request_error", std::move(param), "unsupported_value"};
}

}  // namespace gannet::server
