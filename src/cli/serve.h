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
  std::vector<std::string> names, keys, origins;
  std::string admin_key, log_level = "info";
  int32_t max_connections = 1024, max_requests = 1024;
  double max_body_mb = 48;
  int stall_seconds = 60;
  bool any_model = false, log_requests = false;
  std::string key_file, tls_certificate, tls_key;
  int http_threads = 1;
  int drain_seconds = 30;
};

std::shared_ptr<ServeFlags> add_serve(CLI::App& app);
int serve(const ServeFlags& flags);

}  // namespace gannet::cli
