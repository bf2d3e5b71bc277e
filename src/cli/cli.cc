#include "cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "cli/inspect.h"
#include "cli/run.h"
#include "cli/serve.h"

namespace gannet::cli {

int main(int argc, char** argv) {
  CLI::App app("gannet: one engine for large language models", "gannet");
  app.set_version_flag("--version", GANNET_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);

  CLI::App* run_command =
      app.add_subcommand("run", "chat in the terminal, answer one prompt, or run a batch of prompts");
  const auto run_flags = add_run(*run_command);
  CLI::App* serve_command = app.add_subcommand("serve", "serve the OpenAI API and a chat page over HTTP");
  const auto serve_flags = add_serve(*serve_command);
  CLI::App* inspect_command =
      app.add_subcommand("inspect", "show what a model file holds, check it, and say what memory it needs");
  const auto inspect_options = add_inspect(*inspect_command);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (run_command->parsed()) return run(*run_flags);
    if (serve_command->parsed()) return serve(*serve_flags);
    if (inspect_command->parsed()) return inspect(*inspect_options);
  } catch (const std::bad_alloc&) {
    return fail({Errc::no_capacity, "the system has no more memory"});
  } catch (const std::exception& error) {
    return fail({Errc::io, error.what()});
  }
  return 2;
}

}  // namespace gannet::cli
