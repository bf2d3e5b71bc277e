// `gannet serve`: the HTTP API and the web page over one model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"

namespace gannet::cli {

struct ServeFlags {
  ModelFlags model;
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  int32_t parallel = 16;   // sequences at once
  int32_t max_rows = 512;  // of one step
  double kv_gb = 0;        // 0: what `parallel` full contexts need
  std::vector<std::string> names, keys;
  std::string key_file, tls_certificate, tls_key;
  int http_threads = 1;
  int drain_seconds = 30;
};

std::shared_ptr<ServeFlags> add_serve(CLI::App& app);
int serve(const ServeFlags& flags);

}  // namespace gannet::cli
