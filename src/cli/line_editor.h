// One message at a time from the user: with editing and history on a terminal, plainly from a pipe.
// Owner: the main thread; at most one LineEditor at a time (the editing library keeps global state).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace gannet::cli {

class LineEditor {
 public:
  // History is read from `history_file` and written back at destruction; an unreadable one is ignored.
  explicit LineEditor(std::filesystem::path history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next message without its line end; nothing at the end of input. A line that ends in a backslash goes on in
  // the next one; a line of three double quotes opens a block that ends with another such line. Ctrl-C at the
  // prompt drops what was typed and returns an empty message.
  std::optional<std::string> read(const std::string& prompt);

  bool interactive() const { return interactive_; }

 private:
  std::optional<std::string> read_line(const std::string& prompt);

  std::filesystem::path history_file_;
  bool interactive_;
};

// True once after Ctrl-C was pressed since the last call. install_interrupt_handler() must have been called.
bool take_interrupt();
void install_interrupt_handler();

}  // namespace gannet::cli
