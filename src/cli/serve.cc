#include "cli/serve.h"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/progress.h"
#include "engine/service.h"
#include "server/server.h"

namespace gannet::cli {

std::shared_ptr<ServeFlags> add_serve(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  app.footer(
      "Examples:\n"
      "  gannet serve                                    http://127.0.0.1:8000 with a chat page\n"
      "  gannet serve -m model.gguf --host 0.0.0.0 --api-key SECRET\n"
      "  curl localhost:8000/v1/chat/completions -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}'");
  add_model_flags(app, flags->model);
  app.add_option("MODEL", flags->model.model, "the same as --model");
  app.add_option("--host", flags->host, "address to listen on (default 127.0.0.1: this machine only)");
  app.add_option("--port", flags->port, "port to listen on (default 8000; 0: any free one)");
  app.add_option("--parallel,--max-num-seqs", flags->parallel, "sequences that run at once (default 16)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--max-num-batched-tokens", flags->max_rows, "rows of one step (default 512)")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--kv-cache-gb", flags->kv_gb,
                 "memory for the KV cache in GB (default: what --parallel full contexts need)")
      ->check(CLI::PositiveNumber);
  app.add_option("-a,--served-model-name,--alias", flags->names,
                 "names that clients may use for the model (default: the file's)");
  app.add_option("--api-key", flags->keys, "ask clients for this key; may be repeated");
  app.add_option("--api-key-file", flags->key_file, "file with one key a line");
  app.add_option("--ssl-certfile,--ssl-cert-file", flags->tls_certificate, "PEM certificate chain: serve HTTPS");
  app.add_option("--ssl-keyfile,--ssl-key-file", flags->tls_key, "PEM key of the certificate");
  app.add_option("--http-threads,--threads-http", flags->http_threads, "threads for clients (default 1)")
      ->check(CLI::Range(1, 64));
  app.add_option("--admin-key", flags->admin_key,
                 "key of /admin/drain and /admin/log_level (default: they are off)");
  app.add_option("--allowed-origins", flags->origins,
                 "web pages that may call the API, such as https://app.example, or * (default: none)");
  app.add_flag("--accept-any-model", flags->any_model, "requests may name any model: they all get this one");
  app.add_option("--max-connections", flags->max_connections,
                 "open connections; further ones get 503 (default 1024)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-queued-requests", flags->max_requests,
                 "requests that run or wait; further ones get 429 (default 1024)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-body-mb", flags->max_body_mb, "largest request in MB (default 48)")
      ->check(CLI::PositiveNumber);
  app.add_option("--client-stall-timeout", flags->stall_seconds,
                 "seconds after which a client that reads nothing is dropped (default 60)")
      ->check(CLI::Range(1, 86'400));
  app.add_flag("--log-requests,--enable-log-requests", flags->log_requests,
               "one JSON line a request on stderr, without its text");
  app.add_option("--log-level", flags->log_level, "debug, info, warning, error (default info)")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_option("--drain-timeout", flags->drain_seconds,
                 "seconds that running answers get after SIGTERM (default 30)")
      ->check(CLI::NonNegativeNumber);
  return flags;
}

namespace {

Result<std::vector<std::string>> read_keys(const ServeFlags& flags) {
  std::vector<std::string> keys = flags.keys;
  if (flags.key_file.empty()) return keys;
  GANNET_ASSIGN(const std::string text, read_file(flags.key_file, 1 << 20));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string key = text.substr(begin, end - begin);
    while (!key.empty() && (key.back() == '\r' || key.back() == ' ')) key.pop_back();
    if (!key.empty()) keys.push_back(std::move(key));
    begin = end + 1;
  }
  if (keys.empty()) return Error{Errc::bad_file, fmt::format("{} holds no key", flags.key_file)};
  return keys;
}

}  // namespace

int serve(const ServeFlags& flags) {
  // Signals are taken by this thread alone; every thread started below inherits the mask.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  log::set_level(flags.log_level == "debug"     ? log::Level::debug
                 : flags.log_level == "warning" ? log::Level::warn
                 : flags.log_level == "error"   ? log::Level::error
                                                : log::Level::info);
  auto keys = read_keys(flags);
  if (!keys) return fail(keys.error());
  engine::EngineOptions wanted;
  wanted.max_seqs = flags.parallel;
  wanted.max_rows = flags.max_rows;
  wanted.kv_bytes = static_cast<int64_t>(flags.kv_gb * 1e9);
  auto loaded = load(flags.model, wanted);
  if (!loaded) return fail(loaded.error());
  engine::LoadedModel& model = *loaded->model;
  if (!model.tokenizer)
    return fail({Errc::unsupported, fmt::format("{} has no tokenizer: it cannot be served", model.name)});
  const int64_t kv_bytes = loaded->engine->runner().kv_bytes;
  log::info("{}: weights {}, KV cache {} (reserved), {} sequences of {} tokens, {} threads, loaded in {:.0f} ms",
            model.name, format_bytes(model.model->info().weight_bytes), format_bytes(kv_bytes), flags.parallel,
            loaded->engine->options().max_context, loaded->engine->runner().n_threads, model.load_ms);

  engine::Service service(std::move(loaded->engine));
  server::ServerOptions options;
  options.http.address = flags.host;
  options.http.port = flags.port;
  options.http.n_threads = flags.http_threads;
  options.http.tls_certificate = flags.tls_certificate;
  options.http.tls_key = flags.tls_key;
  options.http.max_connections = flags.max_connections;
  options.http.max_body_bytes = static_cast<int64_t>(flags.max_body_mb * 1e6);
  options.http.write_timeout = std::chrono::seconds(flags.stall_seconds);
  options.api_keys = std::move(*keys);
  options.admin_key = flags.admin_key;
  options.allowed_origins = flags.origins;
  options.any_model = flags.any_model;
  options.max_requests = flags.max_requests;
  options.log_requests = flags.log_requests;
  options.model_ids = flags.names.empty() ? std::vector<std::string>{model.name} : flags.names;
  auto server = server::Server::start(options, model, service);
  if (!server) return fail(server.error());
  log::info("ready: listening on {}://{}:{}", flags.tls_certificate.empty() ? "http" : "https", flags.host,
            (*server)->port());

  int signal = 0;
  ::sigwait(&signals, &signal);
  log::info("shutting down: running answers get {} s", flags.drain_seconds);
  (*server)->drain(std::chrono::seconds(flags.drain_seconds));
  service.stop();
  return 0;
}

}  // namespace gannet::cli
