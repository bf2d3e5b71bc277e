// Builds a list of spans, joining neighbours of one owner.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "text/span.h"

namespace gannet {

class SpanWriter {
 public:
  SpanWriter& own(std::string_view text) { return add(text, TextSpan::Owner::template_owned); }
  SpanWriter& client(std::string_view text) { return add(text, TextSpan::Owner::client_owned); }
  SpanWriter& add(std::string_view text, TextSpan::Owner owner) {
    if (text.empty()) return *this;
    if (spans_.empty() || spans_.back().owner != owner)
      spans_.push_back({std::string(text), owner});
    else
      spans_.back().text += text;
    return *this;
  }
  std::vector<TextSpan> take() { return std::exchange(spans_, {}); }

 private:
  std::vector<TextSpan> spans_;
};

}  // namespace gannet
