// An exchange whose reply carries a few headers more, whoever writes it: CORS, the client's request id.
#pragma once

#include <memory>
#include <utility>

#include "net/http_server.h"

namespace gannet::server {

class ExtraHeaders final : public net::Exchange {
 public:
  ExtraHeaders(std::shared_ptr<net::Exchange> inner, net::Headers extra)
      : inner_(std::move(inner)), extra_(std::move(extra)) {}
  void reply(int status, std::string_view type, std::string body, net::Headers headers) override {
    inner_->reply(status, type, std::move(body), with_extra(std::move(headers)));
  }
  void start_stream(int status, std::string_view type, net::Headers headers) override {
    inner_->start_stream(status, type, with_extra(std::move(headers)));
  }
  bool send(std::string bytes) override { return inner_->send(std::move(bytes)); }
  void end_stream() override { inner_->end_stream(); }
  void on_gone(std::function<void()> callback) override { inner_->on_gone(std::move(callback)); }

 private:
  // An extra header takes the place of one of that name.
  net::Headers with_extra(net::Headers headers) const {
    for (const auto& [name, value] : extra_) {
      std::erase_if(headers, [&](const auto& header) { return header.first == name; });
      headers.emplace_back(name, value);
    }
    return headers;
  }

  std::shared_ptr<net::Exchange> inner_;
  net::Headers extra_;
};

}  // namespace gannet::server
