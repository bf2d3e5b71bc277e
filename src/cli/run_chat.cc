#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/generate.h"
#include "cli/line_editor.h"
#include "cli/run.h"

namespace gannet::cli {
namespace {

constexpr const char* kHelp =
    "  /help            this list\n"
    "  /clear           forget the conversation\n"
    "  /system TEXT     set the system message and start over\n"
    "  /undo            take back the last question and its answer\n"
    "  /retry           answer the last question again, with another seed\n"
    "  /temp VALUE      set the temperature\n"
    "  /quit            leave (also Ctrl-D)\n"
    "Ctrl-C stops an answer. A line that ends in \\ goes on; \"\"\" on a line of its own opens and closes a "
    "block.\n";

class Chat {
 public:
  Chat(const RunFlags& flags, Loaded& loaded, sample::SamplingParams sampling)
      : flags_(flags), loaded_(loaded), sampling_(std::move(sampling)), system_(flags.system) {
    start_over();
  }

  Status prepare() { return apply_thinking(flags_, conversation_); }

  // False: the session ends.
  bool handle(const std::string& message) {
    if (message.empty()) return true;
    if (message[0] == '/') return command(message);
    conversation_.messages.push_back({.role = Role::user, .blocks = {ContentBlock::of_text(message)}});
    return answer();
  }

  bool failed() const { return failed_; }

 private:
  void start_over() {
    conversation_.messages.clear();
    if (!system_.empty())
      conversation_.messages.push_back({.role = Role::system, .blocks = {ContentBlock::of_text(system_)}});
  }

  bool command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (name == "/quit" || name == "/exit") return false;
    if (name == "/clear")
      start_over();
    else if (name == "/system") {
      system_ = rest;
      start_over();
    } else if (name == "/undo")
      take_back(Role::user);
    else if (name == "/retry") {
      take_back(Role::assistant);
      if (conversation_.messages.empty() || conversation_.messages.back().role != Role::user) return true;
      ++sampling_.seed;
      return answer();
    } else if (name == "/temp")
      set_temperature(rest);
    else
      fmt::print("{}", name == "/help" ? kHelp : fmt::format("unknown command {}; /help lists them\n", name));
    return true;
  }

  // Removes messages from the end, back to and including the last one of `role`.
  void take_back(Role role) {
    auto& messages = conversation_.messages;
    auto it = messages.end();
    while (it != messages.begin())
      if ((--it)->role == role) {
        messages.erase(it, messages.end());
        return;
      }
  }

  void set_temperature(const std::string& text) {
    char* end = nullptr;
    sample::SamplingParams changed = sampling_;
    changed.temperature = std::strtod(text.c_str(), &end);
    const Status good = sample::validate(changed, loaded_.model->model->info().vocab);
    if (text.empty() || *end != '\0')
      fmt::print("/temp needs a number, not '{}'\n", text);
    else if (!good)
      fmt::print("{}\n", good.error().message);
    else
      sampling_ = std::move(changed);
  }

  bool answer() {
    auto prompt = encode_chat(*loaded_.model, conversation_);
    if (!prompt) return refuse(prompt.error());
    const auto show = [&](std::string_view piece) {
      written_ = written_ && std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() &&
                 std::fflush(stdout) == 0;
    };
    auto result = generate(loaded_, std::move(*prompt), sampling_, flags_.sampling.max_tokens, show,
                           [&] { return take_interrupt() || !written_; });
    if (!result) return refuse(result.error());
    if (!written_ || std::fputs("\n", stdout) < 0 || std::fflush(stdout) != 0) {
      failed_ = true;
      fail({Errc::io, "the answer could not be written: it is not complete"});
      return false;
    }
    if (!flags_.quiet) fmt::print(stderr, "{}\n", speed_line(*result));
    conversation_.messages.push_back({.role = Role::assistant, .blocks = {ContentBlock::of_text(result->text)}});
    return true;
  }

  // The question is taken back, so the session goes on as if it had not been asked.
  bool refuse(const Error& error) {
    conversation_.messages.pop_back();
    fail(error);
    failed_ = true;
    return ::isatty(STDIN_FILENO) == 1;
  }

  const RunFlags& flags_;
  Loaded& loaded_;
  sample::SamplingParams sampling_;
  std::string system_;
  Conversation conversation_;
  bool written_ = true, failed_ = false;
};

std::filesystem::path history_file() {
  if (const char* state = std::getenv("XDG_STATE_HOME")) return std::filesystem::path(state) / "gannet" / "history";
  if (const char* home = std::getenv("HOME")) return std::filesystem::path(home) / ".local/state/gannet/history";
  return {};
}

}  // namespace

int run_chat(const RunFlags& flags, Loaded& loaded) {
  auto sampling = sampling_params(flags.sampling);
  if (!sampling) return fail(sampling.error());
  if (flags.raw) return fail({Errc::bad_request, "--raw needs a --prompt to continue"});
  Chat chat(flags, loaded, std::move(*sampling));
  if (const Status good = chat.prepare(); !good) return fail(good.error());
  install_interrupt_handler();
  LineEditor editor(history_file());
  if (editor.interactive() && !flags.quiet)
    fmt::print("{} on {} threads, context {} tokens, loaded in {:.0f} ms. /help lists commands.\n",
               loaded.model->name, loaded.engine->runner().n_threads, loaded.engine->options().max_context,
               loaded.model->load_ms);
  while (const auto message = editor.read("> "))
    if (!chat.handle(*message)) break;
  if (editor.interactive()) fmt::print("\n");
  return chat.failed() && !editor.interactive() ? 1 : 0;
}

}  // namespace gannet::cli
