#include "net/exchange_queue.h"

#include <fmt/format.h>

#include <iterator>

#include "base/check.h"

namespace gannet::net {

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 529:
      return "Overloaded";
    default:
      return "Unknown";
  }
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

void ExchangeQueue::put_head(int status, std::string_view content_type, const Headers& headers, int64_t length) {
  auto out = std::back_inserter(queued_);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", status, status_text(status));
  if (!content_type.empty()) fmt::format_to(out, "Content-Type: {}\r\n", content_type);
  for (const auto& [name, value] : headers) {
    GANNET_CHECK(
        name.find_first_of("\r\n") == std::string::npos && value.find_first_of("\r\n") == std::string::npos,
        "a header holds a line break");
    fmt::format_to(out, "{}: {}\r\n", name, value);
  }
  if (length >= 0)
    fmt::format_to(out, "Content-Length: {}\r\n", length);
  else
    fmt::format_to(out, "Transfer-Encoding: chunked\r\n");
  fmt::format_to(out, "Connection: {}\r\n\r\n", keep_alive_ ? "keep-alive" : "close");
  started_ = true;
}

// Tells a waiting connection, outside the lock: wake() may run the connection's code at once.
void ExchangeQueue::notify(std::unique_lock<std::mutex>& lock) {
  const bool wake = std::exchange(waiting_, false);
  lock.unlock();
  if (wake) wake_();
}

void ExchangeQueue::reply(int status, std::string_view content_type, std::string body, Headers headers) {
  std::unique_lock lock(mutex_);
  if (gone_) return;
  GANNET_CHECK(!started_, "a second reply to one request");
  put_head(status, content_type, headers, static_cast<int64_t>(body.size()));
  if (!head_only_) queued_ += body;
  ended_ = true;
  notify(lock);
}

void ExchangeQueue::start_stream(int status, std::string_view content_type, Headers headers) {
  std::unique_lock lock(mutex_);
  if (gone_) return;
  GANNET_CHECK(!started_, "a second reply to one request");
  put_head(status, content_type, headers, -1);
  notify(lock);
}

bool ExchangeQueue::send(std::string bytes) {
  std::unique_lock lock(mutex_);
  if (gone_ || overflow_) return false;
  GANNET_CHECK(started_ && !ended_, "bytes outside a stream");
  if (bytes.empty() || head_only_) return true;
  if (static_cast<int64_t>(queued_.size() + bytes.size()) > max_queued_bytes_) {
    overflow_ = true;
    notify(lock);
    return false;
  }
  fmt::format_to(std::back_inserter(queued_), "{:x}\r\n", bytes.size());
  queued_ += bytes;
  queued_ += "\r\n";
  notify(lock);
  return true;
}

void ExchangeQueue::end_stream() {
  std::unique_lock lock(mutex_);
  if (gone_ || ended_) return;
  GANNET_CHECK(started_, "the stream was never started");
  if (!head_only_) queued_ += "0\r\n\r\n";
  ended_ = true;
  notify(lock);
}

void ExchangeQueue::on_gone(std::function<void()> callback) {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  if (!gone_) {
    on_gone_ = std::move(callback);
    return;
  }
  lock.unlock();
  callback();
}

ExchangeQueue::State ExchangeQueue::take(std::string& out) {
  const std::lock_guard lock(mutex_);
  if (overflow_) return State::overflow;
  out.clear();
  std::swap(out, queued_);
  if (ended_) {
    on_gone_ = nullptr;  // whoever it would tell is done, and it may hold the last reference to them
    return State::done;
  }
  waiting_ = out.empty();
  return waiting_ ? State::waiting : State::data;
}

void ExchangeQueue::gone() {
  std::unique_lock lock(mutex_);
  if (gone_) return;
  gone_ = true;
  queued_.clear();
  const auto callback = std::exchange(on_gone_, nullptr);
  lock.unlock();
  if (callback) callback();
}

bool ExchangeQueue::started() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

void ExchangeQueue::drop_keep_alive() {
  const std::lock_guard lock(mutex_);
  keep_alive_ = false;
}

bool ExchangeQueue::keep_alive() const {
  const std::lock_guard lock(mutex_);
  return keep_alive_;
}

}  // namespace gannet::net
