// Joins what a parser of output finds into events. Internal to text/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/output_parser.h"

namespace gannet {

// Collects what happened within one push into events: pieces of one kind become one, characters stay whole.
class OutputEventWriter {
 public:
  void begin_push(int64_t token_index, std::vector<OutputEvent>& events);
  void text(OutputEvent::Kind kind, std::string_view bytes, int32_t tool_index = -1);
  void tool_begin(int32_t tool_index, std::string_view full_name);
  void tool_end(int32_t tool_index);
  // At the end of a push; `all`: nothing may be kept, an unfinished character becomes U+FFFD.
  void flush(bool all);

 private:
  void emit(OutputEvent event);
  std::vector<OutputEvent>* events_ = nullptr;
  int64_t next_token_ = 0, end_token_ = 0;
  OutputEvent::Kind kind_ = OutputEvent::Kind::content;
  int32_t tool_index_ = -1;
  std::string pending_;
};

}  // namespace gannet
