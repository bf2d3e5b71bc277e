// Stop strings in streamed text: finds the one that is complete first, and holds back no more than what may still
// become one.
// One object a text; one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gannet {

class StopStrings {
 public:
  // `stops` are non-empty. With `include`, the stop string found is part of the text.
  explicit StopStrings(std::vector<std::string> stops, bool include = false);

  // Appends `text` and returns what may be shown. Held back: the longest suffix that is a proper prefix of a stop
  // string. Once a stop string is found, everything from it on is dropped.
  std::string push(std::string_view text);
  // The end of the text: what was held back is shown.
  std::string flush();

  bool found() const { return found_ != nullptr; }
  const std::string& which() const { return *found_; }  // found() only

 private:
  std::vector<std::string> stops_;
  bool include_;
  std::string held_;
  const std::string* found_ = nullptr;
};

}  // namespace gannet
