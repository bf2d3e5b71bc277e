// A server around the model that says what it is told to, for tests of protocols.
#pragma once

#include <memory>

#include "server/server.h"
#include "support/say_model.h"
#include "text/tokenizer_file.h"

namespace gannet::test {

struct SayServer {
  std::unique_ptr<engine::LoadedModel> model;
  std::unique_ptr<engine::Service> service;
  std::unique_ptr<server::Server> server;

  static Result<std::unique_ptr<SayServer>> start(server::ServerOptions options) {
    auto out = std::make_unique<SayServer>();
    out->model = std::make_unique<engine::LoadedModel>();
    engine::LoadedModel& model = *out->model;
    GANNET_ASSIGN(model.tokenizer, load_tokenizer(std::string(GANNET_SOURCE_DIR) + "/tests/golden/tokenizer/tiny"));
    model.name = "say";
    GANNET_ASSIGN(model.chat, make_chat_encoder({.model_type = "deepseek_v41"}));
    model.output_format = OutputFormat::deepseek_dsml;
    model.stop_ids = model.tokenizer->eos_ids();
    model.model = std::make_unique<SayModel>(*model.tokenizer);
    GANNET_ASSIGN(auto engine,
                  engine::Engine::create(*model.model, this_machine(),
                                         {.max_context = 8192, .max_seqs = 16, .n_threads = 1}, "say"));
    out->service = std::make_unique<engine::Service>(std::move(engine));
    if (options.model_ids.empty()) options.model_ids = {"say"};
    GANNET_ASSIGN(out->server, server::Server::start(options, model, *out->service));
    return out;
  }
  ~SayServer() {
    if (server) server->drain(std::chrono::seconds(5));
    server.reset();
    service.reset();
  }
};

}  // namespace gannet::test
