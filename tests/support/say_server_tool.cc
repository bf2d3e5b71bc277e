// say_server_tool: serves the model that says what it is told to, prints its port, and ends when stdin does.
#include <cstdio>

#include "support/say_server.h"

int main() {
  auto running = gannet::test::SayServer::start({});
  if (!running) {
    std::fprintf(stderr, "%s\n", running.error().message.c_str());
    return 1;
  }
  std::printf("%d\n", (*running)->server->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
