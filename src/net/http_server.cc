#include "net/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <map>
#include <thread>

#include "base/log.h"
#include "net/exchange_queue.h"

namespace gannet::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using boost::system::error_code;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// What a handler holds. If it goes away with the reply unfinished, the client is told or cut off, never left
// waiting.
class Handle final : public Exchange {
 public:
  explicit Handle(std::shared_ptr<ExchangeQueue> queue, std::function<void()> abandon)
      : queue_(std::move(queue)), abandon_(std::move(abandon)) {}
  ~Handle() override {
    if (ended_) return;
    if (!queue_->started()) {
      queue_->drop_keep_alive();
      queue_->reply(500, "text/plain", "the server lost this request\n", {});
    } else {
      abandon_();
    }
  }
  void reply(int status, std::string_view type, std::string body, Headers headers) override {
    ended_ = true;
    queue_->reply(status, type, std::move(body), std::move(headers));
  }
  void start_stream(int status, std::string_view type, Headers headers) override {
    queue_->start_stream(status, type, std::move(headers));
  }
  bool send(std::string bytes) override { return queue_->send(std::move(bytes)); }
  void end_stream() override {
    ended_ = true;
    queue_->end_stream();
  }
  void on_gone(std::function<void()> callback) override { queue_->on_gone(std::move(callback)); }

 private:
  std::shared_ptr<ExchangeQueue> queue_;
  std::function<void()> abandon_;
  std::atomic<bool> ended_{false};
};

class Server;

// State of one connection that its coroutines share; everything runs on its strand.
template <class Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Server& server, Stream stream, std::string peer)
      : server_(server),
        stream_(std::move(stream)),
        deadline_(stream_.get_executor()),
        wake_(stream_.get_executor()),
        peer_(std::move(peer)) {}

  asio::awaitable<void> run();
  void close() {
    closing_ = true;
    error_code ignored;
    lowest().shutdown(tcp::socket::shutdown_both, ignored);
    lowest().close(ignored);
    deadline_.cancel();
    wake_.cancel();
  }
  bool idle() const { return !exchange_; }

 private:
  tcp::socket& lowest() {
    if constexpr (std::is_same_v<Stream, tcp::socket>)
      return stream_;
    else
      return stream_.next_layer();
  }
  void expire_in(std::chrono::milliseconds limit) {
    timed_out_ = false;
    expires_at_ = Clock::now() + limit;
    deadline_.cancel();  // the watchdog looks again
  }
  asio::awaitable<void> watchdog();
  asio::awaitable<void> watch_client();
  asio::awaitable<bool> fill();
  asio::awaitable<bool> read_request(http::request_parser<http::string_body>& parser);
  asio::awaitable<bool> exchange(http::request<http::string_body> message);
  asio::awaitable<void> refuse(int status, std::string message);
  asio::awaitable<bool> write(std::string_view bytes);

  Server& server_;
  Stream stream_;
  asio::steady_timer deadline_, wake_;
  Clock::time_point expires_at_ = Clock::time_point::max();
  boost::beast::flat_buffer buffer_;
  std::string peer_;
  std::shared_ptr<ExchangeQueue> exchange_;
  bool timed_out_ = false, closing_ = false, reading_ = false, client_gone_ = false, woken_ = false;
};

class Server final : public HttpServer {
 public:
  Server(const HttpServerOptions& options, Handler handler)
      : options_(options),
        handler_(std::move(handler)),
        tls_(asio::ssl::context::tls_server),
        acceptor_(context_),
        work_(asio::make_work_guard(context_)) {}
  ~Server() override { stop(); }

  Status open();
  uint16_t port() const override { return port_; }
  HttpServerCounts counts() const override {
    HttpServerCounts counts;
    counts.connections = n_connections;
    counts.requests = n_requests;
    counts.bad_requests = n_bad;
    counts.open_connections = open_connections;
    counts.open_exchanges = open_exchanges;
    return counts;
  }
  bool drain(std::chrono::milliseconds limit) override;
  void stop() override;

  const HttpServerOptions& options() const { return options_; }
  const Handler& handler() const { return handler_; }
  bool draining() const { return draining_; }

  std::atomic<int64_t> n_connections{0}, n_requests{0}, n_bad{0};
  std::atomic<int32_t> open_connections{0}, open_exchanges{0};

 private:
  asio::awaitable<void> accept();
  template <class Stream>
  void start(Stream stream, std::string peer);

  HttpServerOptions options_;
  Handler handler_;
  asio::io_context context_;
  asio::ssl::context tls_;
  tcp::acceptor acceptor_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::map<int64_t, std::function<void(bool idle_only)>> closers_;  // by connection; posts to its strand
  std::atomic<bool> draining_{false};
  uint16_t port_ = 0;
};

// ---- one connection --------------------------------------------------------------------------------------------

template <class Stream>
asio::awaitable<void> Connection<Stream>::watchdog() {
  const auto self = this->shared_from_this();
  while (!closing_) {
    deadline_.expires_at(expires_at_);
    co_await deadline_.async_wait(kAwait);
    if (closing_ || Clock::now() < expires_at_) continue;
    timed_out_ = true;
    expires_at_ = Clock::time_point::max();
    error_code ignored;
    lowest().cancel(ignored);
  }
}

// While a reply is on its way the only thing a client may do is send its next request, or leave.
template <class Stream>
asio::awaitable<void> Connection<Stream>::watch_client() {
  const auto self = this->shared_from_this();
  reading_ = true;
  const auto [error, n] = co_await stream_.async_read_some(buffer_.prepare(4096), kAwait);
  reading_ = false;
  if (!error)
    buffer_.commit(n);
  else if (!timed_out_)
    client_gone_ = true;
  if (client_gone_ && exchange_) exchange_->gone();
  woken_ = true;
  wake_.cancel();
}

template <class Stream>
asio::awaitable<bool> Connection<Stream>::write(std::string_view bytes) {
  expire_in(server_.options().write_timeout);
  const auto [error, n] = co_await asio::async_write(stream_, asio::buffer(bytes), kAwait);
  expires_at_ = Clock::time_point::max();
  co_return !error;
}

template <class Stream>
asio::awaitable<void> Connection<Stream>::refuse(int status, std::string message) {
  ++server_.n_bad;
  message = fmt::format(
      "{{\"error\":{{\"message\":\"{}\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}}}",
      message);
  ExchangeQueue queue(false, false, INT64_MAX, [] {});
  queue.reply(status, "application/json", std::move(message), {});
  std::string bytes;
  queue.take(bytes);
  co_await write(bytes);
}

// Waits for the first bytes of a request. False: the client left, or the connection is to end.
template <class Stream>
asio::awaitable<bool> Connection<Stream>::fill() {
  expire_in(server_.options().idle_timeout);
  while (reading_) {  // the read that watched the last reply is still waiting: it is the one to wait for
    wake_.expires_at(Clock::time_point::max());
    co_await wake_.async_wait(kAwait);
    if (client_gone_ || closing_) co_return false;
  }
  if (client_gone_) co_return false;
  if (buffer_.size() == 0) {
    const auto [error, n] = co_await stream_.async_read_some(buffer_.prepare(4096), kAwait);
    if (error) co_return false;
    buffer_.commit(n);
  }
  co_return true;
}

template <class Stream>
asio::awaitable<bool> Connection<Stream>::read_request(http::request_parser<http::string_body>& parser) {
  const HttpServerOptions& options = server_.options();
  parser.header_limit(static_cast<uint32_t>(options.max_header_bytes));
  parser.body_limit(static_cast<uint64_t>(options.max_body_bytes));
  if (!co_await fill()) co_return false;
  expire_in(options.header_timeout);
  auto [error, n] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
  if (!error && !parser.is_done()) {
    if (boost::beast::iequals(parser.get()[http::field::expect], "100-continue"))
      if (!co_await write("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
    expire_in(options.body_timeout);
    std::tie(error, n) = co_await http::async_read(stream_, buffer_, parser, kAwait);
  }
  expires_at_ = Clock::time_point::max();
  if (!error) co_return true;
  if (timed_out_) {
    co_await refuse(408, "the request did not arrive in time");
  } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    co_await refuse(431,
                    fmt::format("the headers have more than the {} bytes allowed here", options.max_header_bytes));
  } else if (error == http::error::body_limit) {
    co_await refuse(413, fmt::format("the body has more than the {} bytes allowed here", options.max_body_bytes));
  } else if (error.category() == make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    co_await refuse(400, fmt::format("not a valid HTTP request: {}", error.message()));
  }
  co_return false;
}

// Hands the request over and writes the reply as it comes. True: the connection goes on.
template <class Stream>
asio::awaitable<bool> Connection<Stream>::exchange(http::request<http::string_body> message) {
  const auto self = this->shared_from_this();
  const bool keep_alive = message.keep_alive() && !server_.draining();
  const auto executor = stream_.get_executor();
  exchange_ = std::make_shared<ExchangeQueue>(keep_alive, message.method() == http::verb::head,
                                              server_.options().max_queued_bytes, [self, executor] {
                                                asio::post(executor, [self] {
                                                  self->woken_ = true;
                                                  self->wake_.cancel();
                                                });
                                              });
  ++server_.n_requests;
  ++server_.open_exchanges;
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    request.headers.emplace_back(std::move(name), std::string(field.value()));
  }
  request.body = std::move(message.body());
  request.peer = peer_;
  if (!reading_ && buffer_.size() == 0) asio::co_spawn(executor, watch_client(), asio::detached);
  server_.handler()(std::move(request), std::make_shared<Handle>(exchange_, [self, executor] {
                      asio::post(executor, [self] { self->close(); });
                    }));
  std::string bytes;
  bool good = true;
  for (bool done = false; !done && good;) {
    woken_ = false;
    const auto state = exchange_->take(bytes);
    done = state == ExchangeQueue::State::done;
    good = state != ExchangeQueue::State::overflow && !client_gone_ && !closing_;
    if (good && !bytes.empty()) good = co_await write(bytes);
    if (good && state == ExchangeQueue::State::waiting && !woken_) {
      wake_.expires_at(Clock::time_point::max());
      co_await wake_.async_wait(kAwait);
    }
  }
  if (!good) exchange_->gone();
  good = good && exchange_->keep_alive();
  exchange_.reset();
  --server_.open_exchanges;
  co_return good;
}

template <class Stream>
asio::awaitable<void> Connection<Stream>::run() {
  const auto self = this->shared_from_this();
  asio::co_spawn(stream_.get_executor(), watchdog(), asio::detached);
  bool good = true;
  if constexpr (!std::is_same_v<Stream, tcp::socket>) {
    expire_in(server_.options().header_timeout);
    const auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kAwait);
    good = !error;
  }
  while (good && !closing_ && !(server_.draining() && buffer_.size() == 0)) {
    http::request_parser<http::string_body> parser;
    good = co_await read_request(parser);
    if (good) good = co_await exchange(parser.release());
  }
  if constexpr (!std::is_same_v<Stream, tcp::socket>) {
    if (!closing_ && !client_gone_) {
      expire_in(std::chrono::milliseconds(1000));
      co_await stream_.async_shutdown(kAwait);
    }
  }
  close();
}

// ---- the server ------------------------------------------------------------------------------------------------

Status Server::open() {
  error_code error;
  const auto failed = [&](std::string_view doing) {
    return Error{Errc::io,
                 fmt::format("cannot {} {} port {}: {}", doing, options_.address, options_.port, error.message())};
  };
  if (!options_.tls_certificate.empty()) {
    tls_.use_certificate_chain_file(options_.tls_certificate, error);
    if (error)
      return Error{Errc::io,
                   fmt::format("cannot use TLS certificate {}: {}", options_.tls_certificate, error.message())};
    tls_.use_private_key_file(options_.tls_key, asio::ssl::context::pem, error);
    if (error) return Error{Errc::io, fmt::format("cannot use TLS key {}: {}", options_.tls_key, error.message())};
    tls_.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  }
  const auto address = asio::ip::make_address(options_.address, error);
  if (error) return failed("listen on");
  const tcp::endpoint endpoint(address, options_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (error) return failed("listen on");
  acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  acceptor_.bind(endpoint, error);
  if (error) return failed("listen on");
  acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return failed("listen on");
  port_ = acceptor_.local_endpoint().port();
  asio::co_spawn(context_, accept(), asio::detached);
  for (int i = 0; i < std::max(options_.n_threads, 1); ++i) threads_.emplace_back([this] { context_.run(); });
  return ok();
}

template <class Stream>
void Server::start(Stream stream, std::string peer) {
  const auto executor = stream.get_executor();
  auto connection = std::make_shared<Connection<Stream>>(*this, std::move(stream), std::move(peer));
  const int64_t id = n_connections;  // only the accepting coroutine counts it up
  {
    const std::lock_guard lock(mutex_);
    closers_.emplace(id, [weak = std::weak_ptr(connection), executor](bool idle_only) {
      asio::post(executor, [weak, idle_only] {
        if (const auto alive = weak.lock(); alive && (!idle_only || alive->idle())) alive->close();
      });
    });
  }
  asio::co_spawn(executor, connection->run(), [this, connection, id](std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      closers_.erase(id);
    }
    --open_connections;
    if (error) log::error("a connection ended by an exception");
  });
}

asio::awaitable<void> Server::accept() {
  while (acceptor_.is_open()) {
    tcp::socket socket(asio::make_strand(context_));
    const auto [error] = co_await acceptor_.async_accept(socket, kAwait);
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) co_return;
    if (error) {  // out of file descriptors, most likely: wait for some to come free
      asio::steady_timer pause(context_, std::chrono::milliseconds(50));
      co_await pause.async_wait(kAwait);
      continue;
    }
    ++n_connections;
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const auto endpoint = socket.remote_endpoint(ignored);
    if (open_connections >= options_.max_connections) {
      constexpr std::string_view kBusy =
          "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n";
      socket.write_some(asio::buffer(kBusy), ignored);
      continue;
    }
    ++open_connections;
    if (options_.tls_certificate.empty())
      start(std::move(socket), endpoint.address().to_string());
    else
      start(asio::ssl::stream<tcp::socket>(std::move(socket), tls_), endpoint.address().to_string());
  }
}

bool Server::drain(std::chrono::milliseconds limit) {
  draining_ = true;
  asio::post(context_, [this] {
    error_code ignored;
    acceptor_.close(ignored);
  });
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, close] : closers_) close(true);
  }
  const auto until = Clock::now() + limit;
  while (open_connections > 0 && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return open_connections == 0;
}

void Server::stop() {
  if (threads_.empty()) return;
  drain(std::chrono::milliseconds(0));
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, close] : closers_) close(false);
  }
  const auto until = Clock::now() + std::chrono::seconds(5);
  while (open_connections > 0 && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  work_.reset();
  context_.stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options, Handler handler) {
  auto server = std::make_unique<Server>(options, std::move(handler));
  GANNET_TRY(server->open());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace gannet::net
