#include "server/server.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>

#include "server/anthropic.h"
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

bool is_anthropic(std::string_view path) { return path == "/messages" || path == "/messages/count_tokens"; }

}  // namespace

Server::Server(const ServerOptions& options, const engine::LoadedModel& model, engine::Service& service)
    : options_(options),
      model_(model),
      service_(service),
      fingerprint_(fmt::format("fp_{:08x}", std::hash<std::string>()(model.weights_id) & 0xFFFFFFFFu)),
      started_(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                   .count()) {}

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
  http_->drain(limit);
  http_->stop();
}

bool Server::authorised(const net::HttpRequest& request) const {
  if (options_.api_keys.empty()) return true;
  std::string_view given = request.header("x-api-key");
  if (const std::string_view bearer = request.header("authorization"); bearer.starts_with("Bearer "))
    given = bearer.substr(7);
  bool good = false;
  for (const std::string& key : options_.api_keys) good |= same_key(given, key);  // every key is compared
  return good;
}

std::string Server::new_id(const char* prefix) {
  unsigned char random[12];
  if (::RAND_bytes(random, sizeof random) != 1) return fmt::format("{}{:024x}", prefix, ++next_id_);
  std::string id = prefix;
  for (const unsigned char byte : random) id += fmt::format("{:02x}", byte);
  return id;
}

void Server::handle(net::HttpRequest request, std::shared_ptr<net::Exchange> exchange) {
  const std::string path = normal_path(request.path);
  if (path == "/health" || path == "/ping" || path == "/ready") {
    const bool ready = !draining_;
    return exchange->reply(ready ? 200 : 503, kJson, ready ? "{\"status\":\"ok\"}" : "{\"status\":\"draining\"}");
  }
  if (path == "/metrics") return exchange->reply(200, "text/plain; version=0.0.4", metrics_body());
  if (path == "/version") return exchange->reply(200, kJson, "{\"version\":\"" GANNET_VERSION "\"}");
  if ((path == "/" || path == "/index.html") && request.method == "GET")
    return exchange->reply(
        200, "text/html; charset=utf-8", std::string(web_page()),
        {{"Content-Security-Policy", std::string(web_page_policy())}, {"X-Content-Type-Options", "nosniff"}});
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
  const RouteContext context{model_, service_, options_.model_ids.front(), fingerprint_, arrived};
  if (path == "/chat/completions")
    return chat_completions(context, *body, std::move(exchange), new_id("chatcmpl-"));
  if (path == "/completions") return completions(context, *body, std::move(exchange), new_id("cmpl-"));
  if (path == "/responses") return responses(context, *body, std::move(exchange), new_id("resp_"));
  if (path == "/messages") return messages(context, *body, std::move(exchange), new_id("msg_"));
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

// Prometheus text. Names that vLLM's dashboards read come first, then our own.
std::string Server::metrics_body() const {
  const engine::ServiceCounts counts = service_.counts();
  const net::HttpServerCounts http = http_->counts();
  std::string text;
  const auto metric = [&](std::string_view name, std::string_view type, std::string_view help, double value) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{model_name=\"{3}\"}} {4}\n", name, help, type,
                        options_.model_ids.front(), value);
  };
  const auto used = counts.kv_blocks_total == 0
                        ? 0.0
                        : static_cast<double>(counts.kv_blocks_held) / static_cast<double>(counts.kv_blocks_total);
  metric("vllm:num_requests_running", "gauge", "Sequences that own a slot.", counts.scheduler.running);
  metric("vllm:num_requests_waiting", "gauge", "Sequences in the queue.", counts.scheduler.waiting);
  metric("vllm:kv_cache_usage_perc", "gauge", "Share of KV blocks that sequences hold, 0 to 1.", used);
  metric("vllm:num_preemptions_total", "counter", "Sequences put back for lack of KV blocks.",
         static_cast<double>(counts.scheduler.preemptions));
  metric("vllm:prompt_tokens_total", "counter", "Prompt tokens of admitted sequences.",
         static_cast<double>(counts.scheduler.prompt_tokens));
  metric("vllm:generation_tokens_total", "counter", "Sampled tokens.", static_cast<double>(counts.sampled_tokens));
  metric("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.",
         static_cast<double>(counts.scheduler.prompt_tokens));
  metric("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache.",
         static_cast<double>(counts.scheduler.cached_tokens));
  metric("gannet:steps_total", "counter", "Steps run.", static_cast<double>(counts.steps));
  metric("gannet:kv_blocks_kept", "gauge", "KV blocks that only the prefix cache names.",
         static_cast<double>(counts.kv_blocks_kept));
  metric("gannet:http_connections_open", "gauge", "Open client connections.", http.open_connections);
  metric("gannet:http_requests_total", "counter", "HTTP requests taken.", static_cast<double>(http.requests));
  metric("gannet:http_bad_requests_total", "counter", "Requests refused before a handler saw them.",
         static_cast<double>(http.bad_requests));
  return text;
}

}  // namespace gannet::server
