#include "server/server.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>

#include "base/log.h"
#include "server/anthropic.h"
#include "server/extra_headers.h"
#include "server/openai.h"
#include "server/responses.h"
#include "server/web_page.h"

namespace gannet::server {
namespace {

constexpr const char* kJson = "application/json";

// "/v1/models/" -> "/models": the API is served with and without /v1, and a trailing slash is tolerated.
std::string normal_path(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  for (const char* prefix : {"/anthropic/v1/", "/anthropic/", "/api/v1/", "/v1/", "/beta/"})
    if (path.starts_with(prefix)) return path.substr(std::string_view(prefix).size() - 1);
  return path;
}

bool same_key(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view key_of(const net::HttpRequest& request) {
  if (const std::string_view bearer = request.header("authorization"); bearer.starts_with("Bearer "))
    return bearer.substr(7);
  return request.header("x-api-key");
}

// Fit to be sent back in a header.
bool is_printable_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

bool is_anthropic(std::string_view path) { return path == "/messages" || path == "/messages/count_tokens"; }

}  // namespace

Server::Server(const ServerOptions& options, const engine::LoadedModel& model, engine::Service& service)
    : options_(options),
      model_(model),
      service_(service),
      fingerprint_(fmt::format("fp_{:08x}", std::hash<std::string>()(model.weights_id) & 0xFFFFFFFFu)),
      started_(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                   .count()) {
  metrics_.log_requests(options_.log_requests);
}

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, const engine::LoadedModel& model,
                                              engine::Service& service) {
  std::unique_ptr<Server> server(new Server(options, model, service));
  auto* raw = server.get();
  GANNET_ASSIGN(server->http_, net::HttpServer::start(options.http, [raw](net::HttpRequest request,
                                                                          std::shared_ptr<net::Exchange> exchange) {
                  raw->handle(std::move(request), std::move(exchange));
                }));
  return server;
}

void Server::drain(std::chrono::milliseconds limit) {
  draining_ = true;
  if (!http_->drain(limit)) {
    service_.stop();  // what still runs ends with an error event, not with silence
    http_->drain(std::chrono::seconds(1));
  }
  http_->stop();
}

bool Server::authorised(const net::HttpRequest& request) const {
  if (options_.api_keys.empty()) return true;
  const std::string_view given = key_of(request);
  bool good = false;
  for (const std::string& key : options_.api_keys) good |= same_key(given, key);  // every key is compared
  return good;
}

std::string Server::new_id(std::string_view prefix) {
  unsigned char random[12];
  if (::RAND_bytes(random, sizeof random) != 1) return fmt::format("{}{:024x}", prefix, ++next_id_);
  std::string id(prefix);
  for (const unsigned char byte : random) id += fmt::format("{:02x}", byte);
  return id;
}

// Headers that depend on the request alone.
std::shared_ptr<net::Exchange> Server::with_headers(const net::HttpRequest& request,
                                                    std::shared_ptr<net::Exchange> exchange) const {
  net::Headers extra;
  if (const std::string_view id = request.header("x-request-id"); is_printable_id(id))
    extra.emplace_back("X-Request-Id", id);
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && is_printable_id(origin))
    for (const std::string& allowed : options_.allowed_origins)
      if (allowed == "*" || allowed == origin) {
        extra.emplace_back("Access-Control-Allow-Origin", allowed == "*" ? "*" : std::string(origin));
        extra.emplace_back("Vary", "Origin");
        break;
      }
  if (extra.empty()) return exchange;
  return std::make_shared<ExtraHeaders>(std::move(exchange), std::move(extra));
}

// Routes that need no key. False: it is none of them.
bool Server::serve_open(const net::HttpRequest& request, const std::string& path, net::Exchange& exchange) {
  if (request.method == "OPTIONS") {
    exchange.reply(204, "", "",
                   {{"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
                    {"Access-Control-Allow-Headers", "authorization, content-type, x-api-key, anthropic-version"},
                    {"Access-Control-Max-Age", "600"}});
    return true;
  }
  if (path == "/health" || path == "/ping" || path == "/ready") {
    const bool ready = !draining_;
    exchange.reply(ready ? 200 : 503, kJson, ready ? "{\"status\":\"ok\"}\n" : "{\"status\":\"draining\"}\n");
  } else if (path == "/metrics") {
    exchange.reply(200, "text/plain; version=0.0.4",
                   metrics_.text(options_.model_ids.front(), service_.counts(), http_->counts()));
  } else if (path == "/version") {
    exchange.reply(200, kJson, "{\"version\":\"" GANNET_VERSION "\"}\n");
  } else if ((path == "/" || path == "/index.html") && (request.method == "GET" || request.method == "HEAD")) {
    exchange.reply(200, "text/html; charset=utf-8", std::string(web_page()),
                   {{"Content-Security-Policy", std::string(web_page_policy())},
                    {"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"}});
  } else {
    return false;
  }
  return true;
}

// With a key of their own: drain, log level.
void Server::admin(const net::HttpRequest& request, const std::string& path, net::Exchange& exchange) {
  if (options_.admin_key.empty() || !same_key(key_of(request), options_.admin_key))
    return send_error(
        exchange, {401, "admin routes need the key of --admin-key", "authentication_error", "", "invalid_api_key"});
  if (request.method != "POST")
    return send_error(exchange, {405, fmt::format("{} takes POST", request.path), "invalid_request_error", "",
                                 "method_not_allowed"});
  if (path == "/admin/drain") {
    draining_ = true;
    return exchange.reply(200, kJson, "{\"status\":\"draining\"}\n");
  }
  if (path == "/admin/log_level") {
    const auto body = Json::parse(request.body);
    const Json* level = body ? body->find("level") : nullptr;
    constexpr std::pair<std::string_view, log::Level> kLevels[] = {{"debug", log::Level::debug},
                                                                   {"info", log::Level::info},
                                                                   {"warning", log::Level::warn},
                                                                   {"error", log::Level::error},
                                                                   {"off", log::Level::off}};
    for (const auto& [name, value] : kLevels)
      if (level != nullptr && *level == Json(name)) {
        log::set_level(value);
        return exchange.reply(200, kJson, body->dump() + "\n");
      }
    return send_error(exchange, invalid_value("level", "level must be debug, info, warning, error or off"));
  }
  send_error(exchange,
             {404, fmt::format("there is no route {}", request.path), "invalid_request_error", "", "unknown_url"});
}

void Server::handle(net::HttpRequest request, std::shared_ptr<net::Exchange> exchange) {
  const std::string path = normal_path(request.path);
  exchange = with_headers(request, std::move(exchange));
  if (serve_open(request, path, *exchange)) return;
  if (path.starts_with("/admin/")) return admin(request, path, *exchange);
  if (!authorised(request))
    return refuse(*exchange, path,
                  {401, "this server needs an API key: Authorization: Bearer KEY", "authentication_error", "",
                   "invalid_api_key"});
  if (draining_)
    return refuse(*exchange, path, {503, "the server is shutting down", "server_error", "", "server_overloaded"});
  route(request, path, std::move(exchange));
}

// In the shape that clients of the route parse.
void Server::refuse(net::Exchange& exchange, const std::string& path, const ApiError& error) {
  if (is_anthropic(path)) return send_anthropic_error(exchange, error, new_id("req_"));
  send_error(exchange, error);
}

void Server::route(const net::HttpRequest& request, const std::string& path,
                   std::shared_ptr<net::Exchange> exchange) {
  const bool is_post = path == "/chat/completions" || path == "/completions" || path == "/responses" ||
                       is_anthropic(path) || path == "/tokenize" || path == "/detokenize";
  const bool is_get = path == "/models" || path.starts_with("/models/");
  if (!is_post && !is_get)
    return send_error(*exchange, {404, fmt::format("there is no route {}", request.path), "invalid_request_error",
                                  "", "unknown_url"});
  if ((is_post && request.method != "POST") || (is_get && request.method != "GET" && request.method != "HEAD"))
    return exchange->reply(405, kJson,
                           ApiError{405, fmt::format("{} does not take {}", request.path, request.method),
                                    "invalid_request_error", "", "method_not_allowed"}
                               .openai_body(),
                           {{"Allow", is_post ? "POST" : "GET, HEAD"}});
  if (is_post) return post(path, request, std::move(exchange));
  if (path == "/models") return exchange->reply(200, kJson, models_body());
  const std::string name = path.substr(8);
  if (std::find(options_.model_ids.begin(), options_.model_ids.end(), name) == options_.model_ids.end())
    return send_error(*exchange, {404, fmt::format("The model `{}` does not exist", name), "invalid_request_error",
                                  "model", "model_not_found"});
  exchange->reply(200, kJson, model_entry(name).dump());
}

// The body as an object that names a model which is there, or the error.
ApiResult<Json> Server::read_body(const net::HttpRequest& request) const {
  auto body = Json::parse(request.body);
  if (!body)
    return tl::make_unexpected(ApiError{400, body.error().message, "invalid_request_error", "", "invalid_json"});
  if (!body->is_object())
    return tl::make_unexpected(
        ApiError{400, "the body must be a JSON object", "invalid_request_error", "", "invalid_type"});
  const Json* model = body->find("model");
  if (model == nullptr || model->is_null()) return std::move(*body);
  const std::string* name = model->as_string();
  if (name == nullptr) return tl::make_unexpected(invalid_type("model", "a string", *model));
  // Some agents mark a name with the context length they would like: a hint to themselves.
  const std::string_view plain =
      std::string_view(*name).substr(0, name->ends_with("[1m]") ? name->size() - 4 : name->size());
  if (!options_.any_model &&
      std::find(options_.model_ids.begin(), options_.model_ids.end(), plain) == options_.model_ids.end())
    return tl::make_unexpected(ApiError{404, fmt::format("The model `{}` does not exist", *name),
                                        "invalid_request_error", "model", "model_not_found"});
  return std::move(*body);
}

void Server::post(const std::string& path, const net::HttpRequest& request,
                  std::shared_ptr<net::Exchange> exchange) {
  const auto arrived = std::chrono::steady_clock::now();
  const auto body = read_body(request);
  if (!body) return refuse(*exchange, path, body.error());
  const bool generates = path != "/messages/count_tokens" && path != "/tokenize" && path != "/detokenize";
  if (generates && metrics_.in_flight() >= options_.max_requests)
    return refuse(
        *exchange, path,
        {429, fmt::format("{} requests run or wait, and no more are taken; try again", options_.max_requests),
         "rate_limit_error", "", "rate_limit_exceeded"});
  const std::string_view prefix = path == "/chat/completions" ? "chatcmpl-"
                                  : path == "/completions"    ? "cmpl-"
                                  : path == "/responses"      ? "resp_"
                                                              : "msg_";
  const RouteContext context{model_,         service_, options_.model_ids.front(), fingerprint_, arrived,
                             new_id(prefix), &metrics_};
  if (path == "/chat/completions") return chat_completions(context, *body, std::move(exchange));
  if (path == "/completions") return completions(context, *body, std::move(exchange));
  if (path == "/responses") return responses(context, *body, std::move(exchange));
  if (path == "/messages") return messages(context, *body, std::move(exchange));
  if (path == "/messages/count_tokens") return count_tokens(context, *body, std::move(exchange));
  tokens(context, path == "/tokenize", *body, std::move(exchange));
}

Json Server::model_entry(const std::string& id) const {
  Json model = Json::object();
  model.set("id", id);
  model.set("object", "model");
  model.set("created", started_);
  model.set("owned_by", "gannet");
  model.set("root", model_.name);
  model.set("parent", Json());
  model.set("max_model_len", service_.max_context());
  return model;
}

std::string Server::models_body() const {
  Json data = Json::array();
  for (const std::string& id : options_.model_ids) data.push(model_entry(id));
  Json body = Json::object();
  body.set("object", "list");
  body.set("data", std::move(data));
  return body.dump();
}

}  // namespace gannet::server
