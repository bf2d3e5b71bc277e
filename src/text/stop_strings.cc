#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gannet {

StopStrings::StopStrings(std::vector<std::string> stops, bool include)
    : stops_(std::move(stops)), include_(include) {
  for (const std::string& stop : stops_) GANNET_CHECK(!stop.empty(), "an empty stop string");
}

std::string StopStrings::push(std::string_view text) {
  if (found()) return {};
  if (stops_.empty()) return std::string(text);
  held_ += text;
  // The stop string that is complete first ends the text, so that the cut does not depend on how the text arrives;
  // of those that end at one place, the longest.
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t place = held_.find(stop);
    if (place == std::string::npos || place + stop.size() > end) continue;
    if (place + stop.size() == end && stop.size() <= found_->size()) continue;
    end = place + stop.size();
    found_ = &stop;
  }
  if (found()) {
    std::string shown = held_.substr(0, include_ ? end : end - found_->size());
    held_.clear();
    return shown;
  }
  size_t keep = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n)
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) {
        keep = n;
        break;
      }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

}  // namespace gannet
