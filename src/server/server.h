// The HTTP API over one loaded model: routes, keys, health, metrics.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/service.h"
#include "net/http_server.h"
#include "server/api_error.h"
#include "server/metrics.h"

namespace gannet::server {

struct ServerOptions {
  net::HttpServerOptions http;
  std::vector<std::string> api_keys;         // empty: no key is asked for
  std::vector<std::string> model_ids;        // names clients may use; the first is shown
  bool any_model = false;                    // every other name means the first model
  std::vector<std::string> allowed_origins;  // CORS; empty: off; "*": everyone
  std::string admin_key;                     // empty: there are no admin routes
  int32_t max_requests = 1024;               // generations at once, waiting ones included; beyond: 429
  bool log_requests = false;                 // one JSON line a request
};

class Server {
 public:
  // Borrows model and service, which must outlive it.
  static Result<std::unique_ptr<Server>> start(const ServerOptions& options, const engine::LoadedModel& model,
                                               engine::Service& service);
  uint16_t port() const { return http_->port(); }
  // Refuses new requests, lets running ones finish for at most `limit`, then closes.
  void drain(std::chrono::milliseconds limit);

 private:
  Server(const ServerOptions& options, const engine::LoadedModel& model, engine::Service& service);
  void handle(net::HttpRequest request, std::shared_ptr<net::Exchange> exchange);
  void route(const net::HttpRequest& request, const std::string& path, std::shared_ptr<net::Exchange> exchange);
  void refuse(net::Exchange& exchange, const std::string& path, const ApiError& error);
  ApiResult<Json> read_body(const net::HttpRequest& request) const;
  bool authorised(const net::HttpRequest& request) const;
  std::shared_ptr<net::Exchange> with_headers(const net::HttpRequest& request,
                                              std::shared_ptr<net::Exchange> exchange) const;
  bool serve_open(const net::HttpRequest& request, const std::string& path, net::Exchange& exchange);
  void admin(const net::HttpRequest& request, const std::string& path, net::Exchange& exchange);
  void post(const std::string& path, const net::HttpRequest& request, std::shared_ptr<net::Exchange> exchange);
  Json model_entry(const std::string& id) const;
  std::string models_body() const;
  std::string new_id(std::string_view prefix);

  ServerOptions options_;
  const engine::LoadedModel& model_;
  engine::Service& service_;
  std::string fingerprint_;
  int64_t started_;
  Metrics metrics_;
  std::atomic<uint64_t> next_id_{0};
  std::atomic<bool> draining_{false};
  std::unique_ptr<net::HttpServer> http_;  // last: its threads call into the rest
};

}  // namespace gannet::server
