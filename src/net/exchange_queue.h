// The bytes of one reply, between whoever produces them (any thread) and the connection that writes them (its
// strand).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "net/http_server.h"

namespace gannet::net {

class ExchangeQueue : public Exchange {
 public:
  // `wake` is called, from any thread, when there is something to write while the connection waits.
  ExchangeQueue(bool keep_alive, bool head_only, int64_t max_queued_bytes, std::function<void()> wake)
      : keep_alive_(keep_alive),
        head_only_(head_only),
        max_queued_bytes_(max_queued_bytes),
        wake_(std::move(wake)) {}
  ~ExchangeQueue() override = default;

  void reply(int status, std::string_view content_type, std::string body, Headers headers) override;
  void start_stream(int status, std::string_view content_type, Headers headers) override;
  bool send(std::string bytes) override;
  void end_stream() override;
  void on_gone(std::function<void()> callback) override;

  // The connection's side.
  enum class State : uint8_t { waiting, data, done, overflow };
  // Moves queued bytes to `out`. waiting: nothing there, wake() will be called. done: out holds the last of it.
  State take(std::string& out);
  void gone();             // the client went away: producers are told
  bool started() const;    // a status line was queued
  void drop_keep_alive();  // the connection is to close after this reply
  bool keep_alive() const;

 private:
  void put_head(int status, std::string_view content_type, const Headers& headers, int64_t length);
  void notify(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::string queued_;
  bool started_ = false, ended_ = false, gone_ = false, waiting_ = false, overflow_ = false;
  bool keep_alive_, head_only_;
  int64_t max_queued_bytes_;
  std::function<void()> wake_, on_gone_;
};

}  // namespace gannet::net
