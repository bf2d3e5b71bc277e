#include "cli/line_editor.h"

#include <editline/readline.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <iostream>

namespace gannet::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int) {
  if (interrupted != 0) {  // a second Ctrl-C before the first was seen: the user wants out
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  interrupted = 1;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // no SA_RESTART: a read at the prompt returns
  ::sigaction(SIGINT, &action, nullptr);
}

bool take_interrupt() {
  const bool was = interrupted != 0;
  interrupted = 0;
  return was;
}

LineEditor::LineEditor(std::filesystem::path history_file)
    : history_file_(std::move(history_file)),
      interactive_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {
  if (!interactive_) return;
  ::rl_initialize();
  ::stifle_history(1000);
  if (!history_file_.empty()) ::read_history(history_file_.c_str());
}

LineEditor::~LineEditor() {
  if (!interactive_ || history_file_.empty()) return;
  std::error_code ignored;  // history is a convenience: a read-only home must not fail a session
  std::filesystem::create_directories(history_file_.parent_path(), ignored);
  ::write_history(history_file_.c_str());
}

std::optional<std::string> LineEditor::read_line(const std::string& prompt) {
  if (!interactive_) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  char* typed = ::readline(prompt.c_str());
  if (typed == nullptr) return std::nullopt;
  std::string line(typed);
  std::free(typed);
  return line;
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  std::string message;
  bool block = false, first = true;
  while (true) {
    auto line = read_line(first ? prompt : "... ");
    if (take_interrupt()) return std::string();
    if (!line) {
      if (first) return std::nullopt;
      break;
    }
    if (!line->empty() && line->back() == '\r') line->pop_back();
    if (*line == "\"\"\"") {
      if (block) break;
      if (first) {
        block = true;
        first = false;
        continue;
      }
    }
    const bool goes_on = !block && !line->empty() && line->back() == '\\';
    if (goes_on) line->pop_back();
    if (!message.empty() || (!first && !block)) message += '\n';
    message += *line;
    first = false;
    if (!block && !goes_on) break;
  }
  if (interactive_ && !message.empty()) ::add_history(message.c_str());
  return message;
}

}  // namespace gannet::cli
