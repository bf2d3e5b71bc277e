// An HTTP/1.1 server: keep-alive, streamed (chunked) replies, TLS, limits on everything a client controls, and
// drain. The HTTP library stays behind this header.
//
// Threads: handlers are called on the server's threads and must not block for long; a reply may be given from any
// thread, at once or later, through the Exchange.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gannet::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // percent-encoded as sent, without the query
  std::string query;   // without '?'
  Headers headers;     // names in lower case, in order
  std::string body;
  std::string peer;  // address of the client

  // First header of that (lower-case) name, or empty.
  std::string_view header(std::string_view name) const;
};

// One request's reply. Exactly one of reply() or start_stream() ... end_stream() must be called; an Exchange that
// is dropped without either answers 500, so that no client waits forever. All calls are thread-safe; after the
// client has gone they do nothing.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void reply(int status, std::string_view content_type, std::string body, Headers headers = {}) = 0;
  virtual void start_stream(int status, std::string_view content_type, Headers headers = {}) = 0;
  // Queues bytes of the stream. False once the client is gone or reads so slowly that max_queued_bytes are waiting;
  // in that case the connection is closed.
  virtual bool send(std::string bytes) = 0;
  virtual void end_stream() = 0;
  // Called once, on a server thread, if the client goes away before the reply is complete. Set it at most once; it
  // is called at once when that has happened already.
  virtual void on_gone(std::function<void()> callback) = 0;
};

using Handler = std::function<void(HttpRequest request, std::shared_ptr<Exchange> exchange)>;

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: the system picks one, see port()
  int n_threads = 1;
  int32_t max_connections = 1024;  // further ones are answered 503 and closed
  int64_t max_header_bytes = 64 << 10;
  int64_t max_body_bytes = 48 << 20;
  int64_t max_queued_bytes = 4 << 20;                // of one stream
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte of a request to the end of its headers
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{75'000};   // between requests of a connection
  std::chrono::milliseconds write_timeout{60'000};  // one write without progress
  std::string tls_certificate, tls_key;             // PEM files; empty: plain HTTP
};

struct HttpServerCounts {
  int64_t connections = 0, requests = 0, bad_requests = 0;
  int32_t open_connections = 0, open_exchanges = 0;
};

class HttpServer {
 public:
  // Binds and listens; io when the address is taken or the certificate cannot be read. Handlers run until stop().
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options, Handler handler);
  virtual ~HttpServer() = default;  // stop()

  virtual uint16_t port() const = 0;
  virtual HttpServerCounts counts() const = 0;
  // Accepts no further connection and closes each one after its reply. Returns when all are closed or `limit`
  // passed.
  virtual bool drain(std::chrono::milliseconds limit) = 0;
  // Closes everything. Handlers no longer run when it returns.
  virtual void stop() = 0;
};

// "Service Unavailable" of 503.
std::string_view status_text(int status);

}  // namespace gannet::net
