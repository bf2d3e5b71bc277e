// A plain TCP client for tests of HTTP servers on the loopback interface.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace gannet::test {

class Client {
 public:
  explicit Client(uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    timeval limit{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { close(); }
  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Reads until `end` is in what was received, or until the server closes.
  std::string until(std::string_view end) {
    std::string text;
    char buffer[4096];
    while (end.empty() || text.find(end) == std::string::npos) {
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }
  std::string rest() { return until({}); }

 private:
  int fd_;
  bool connected_ = false;
};

// One exchange on a connection of its own: status, head, and the body with chunks joined.
struct HttpReply {
  int status = 0;
  std::string head, body;
};
inline HttpReply fetch(uint16_t port, std::string_view method, std::string_view path, std::string_view body = {},
                       std::string_view headers = {}) {
  Client client(port);
  std::string request(method);
  request.append(" ").append(path).append(" HTTP/1.1\r\nHost: test\r\nConnection: close\r\n").append(headers);
  if (!body.empty() || method == "POST")
    request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  request.append("\r\n").append(body);
  client.send(request);
  const std::string text = client.rest();
  HttpReply reply;
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos || text.size() < 12) return reply;
  reply.status = std::stoi(text.substr(9, 3));
  reply.head = text.substr(0, end);
  std::string rest = text.substr(end + 4);
  if (reply.head.find("Transfer-Encoding: chunked") == std::string::npos) {
    reply.body = std::move(rest);
    return reply;
  }
  for (size_t at = 0; at < rest.size();) {
    const size_t line = rest.find("\r\n", at);
    if (line == std::string::npos) break;
    const size_t size = std::stoul(rest.substr(at, line - at), nullptr, 16);
    if (size == 0) break;
    reply.body += rest.substr(line + 2, size);
    at = line + 2 + size + 2;
  }
  return reply;
}

}  // namespace gannet::test
