// The HTTP server over real sockets on the loopback interface.
#include "net/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "support/http_client.h"

namespace gannet::net {
namespace {

using test::Client;

using namespace std::chrono_literals;

std::unique_ptr<HttpServer> serve(Handler handler, HttpServerOptions options = {}) {
  auto server = HttpServer::start(options, std::move(handler));
  EXPECT_TRUE(server.has_value()) << server.error().message;
  return std::move(*server);
}

Handler echo() {
  return [](HttpRequest request, std::shared_ptr<Exchange> exchange) {
    exchange->reply(200, "text/plain",
                    request.method + " " + request.path + "?" + request.query + " " + request.body);
  };
}

TEST(HttpServer, KeepsAliveAndAnswersPipelinedRequestsInOrder) {
  const auto server = serve(echo());
  Client client(server->port());
  client.send("GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(client.until("GET /a?x=1 ").find("200 OK"), std::string::npos);
  client.send(
      "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none"
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: "
      "close\r\n\r\n3\r\ntwo\r\n0\r\n\r\n");
  const std::string both = client.rest();
  EXPECT_LT(both.find("POST /b? one"), both.find("POST /c? two"));
  EXPECT_NE(both.find("POST /c? two"), std::string::npos);
  EXPECT_EQ(server->counts().requests, 3);
}

TEST(HttpServer, StreamsChunksAsTheyCome) {
  const auto server = serve([](HttpRequest, std::shared_ptr<Exchange> exchange) {
    std::thread([exchange] {
      exchange->start_stream(200, "text/event-stream");
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(exchange->send("data: " + std::to_string(i) + "\n\n"));
        std::this_thread::sleep_for(5ms);
      }
      exchange->end_stream();
    }).detach();
  });
  Client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string text = client.until("0\r\n\r\n");
  for (const char* part : {"Transfer-Encoding: chunked", "9\r\ndata: 0\n\n\r\n", "9\r\ndata: 2\n\n\r\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(HttpServer, TellsTheHandlerThatTheClientLeft) {
  std::promise<void> gone;
  std::shared_ptr<Exchange> kept;
  std::mutex mutex;
  const auto server = serve([&](HttpRequest, std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([&] { gone.set_value(); });
    exchange->start_stream(200, "text/event-stream");
    const std::lock_guard lock(mutex);
    kept = exchange;
  });
  Client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.until("\r\n\r\n");
  client.close();
  ASSERT_EQ(gone.get_future().wait_for(5s), std::future_status::ready);
  const std::lock_guard lock(mutex);
  EXPECT_FALSE(kept->send("late"));
  kept.reset();
}

TEST(HttpServer, CutsOffAReaderThatIsTooSlow) {
  std::atomic<bool> refused{false}, ended{false};
  HttpServerOptions options;
  options.max_queued_bytes = 1 << 20;
  const auto server = serve(
      [&](HttpRequest, std::shared_ptr<Exchange> exchange) {
        std::thread([&, exchange] {
          exchange->start_stream(200, "text/plain");
          for (int i = 0; i < 4000 && !refused; ++i) refused = !exchange->send(std::string(16 << 10, 'x'));
          ended = true;
        }).detach();
      },
      options);
  Client client(server->port(), 4096);
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  for (int i = 0; i < 1000 && !ended; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(refused);
}

TEST(HttpServer, RefusesWhatBreaksLimitsOrTheProtocol) {
  HttpServerOptions options;
  options.max_header_bytes = 512;
  options.max_body_bytes = 100;
  options.header_timeout = 150ms;
  options.body_timeout = 150ms;
  const auto server = serve(echo(), options);
  const auto answer = [&](std::string_view bytes) {
    Client client(server->port());
    client.send(bytes);
    return client.rest().substr(0, 12);
  };
  EXPECT_EQ(answer("nonsense\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(answer("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(2000, 'a') + "\r\n\r\n"), "HTTP/1.1 431");
  EXPECT_EQ(answer("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n"), "HTTP/1.1 413");
  EXPECT_EQ(answer("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(answer("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\nshort"), "HTTP/1.1 408");
  EXPECT_EQ(answer("GET / HTTP/1.1\r\nHost:"), "HTTP/1.1 408");
  Client good(server->port());
  good.send("GET /still HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(good.until("/still").find("200 OK"), std::string::npos);
}

TEST(HttpServer, AnExchangeThatIsForgottenAnswers500) {
  const auto server = serve([](HttpRequest, std::shared_ptr<Exchange>) {});
  Client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.rest().substr(0, 12), "HTTP/1.1 500");
}

TEST(HttpServer, DrainFinishesRepliesAndClosesIdleConnections) {
  std::shared_ptr<Exchange> kept;
  std::promise<void> arrived;
  auto server = serve([&](HttpRequest, std::shared_ptr<Exchange> exchange) {
    kept = exchange;
    arrived.set_value();
  });
  Client idle(server->port()), busy(server->port());
  busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  arrived.get_future().wait();
  auto drained = std::async(std::launch::async, [&] { return server->drain(5s); });
  EXPECT_EQ(idle.rest(), "");
  kept->reply(200, "text/plain", "done");
  kept.reset();
  EXPECT_NE(busy.rest().find("done"), std::string::npos);
  EXPECT_TRUE(drained.get());
  Client late(server->port());
  late.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(late.rest(), "");
}

TEST(HttpServer, ManyClientsComeAndGoWithoutALeak) {
  HttpServerOptions options;
  options.n_threads = 2;
  const auto server = serve(
      [](HttpRequest, std::shared_ptr<Exchange> exchange) {
        exchange->start_stream(200, "text/plain");
        for (int i = 0; i < 50; ++i) exchange->send("0123456789");
        exchange->end_stream();
      },
      options);
  for (int round = 0; round < 300; ++round) {
    Client client(server->port());
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    if (round % 3 == 0) client.until("0\r\n\r\n");
    if (round % 3 == 1) client.until("HTTP");
  }
  for (int i = 0; i < 400 && server->counts().open_connections > 0; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(server->counts().open_connections, 0);
  EXPECT_EQ(server->counts().open_exchanges, 0);
}

}  // namespace
}  // namespace gannet::net
