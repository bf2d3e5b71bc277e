#include "text/output_parser_events.h"

#include <algorithm>

namespace gannet {
namespace {

// Bytes at the end of `text` that begin a character and do not end it.
size_t unfinished_bytes(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const auto c = static_cast<unsigned char>(text[text.size() - n]);
    if ((c & 0xC0) == 0x80) continue;
    const size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return length > n ? n : 0;
  }
  return 0;
}

}  // namespace

void OutputEventWriter::begin_push(int64_t token_index, std::vector<OutputEvent>& events) {
  events_ = &events;
  end_token_ = std::max(end_token_, token_index + 1);
}

void OutputEventWriter::emit(OutputEvent event) {
  event.first_token = next_token_;
  event.last_token = next_token_ = end_token_;
  events_->push_back(std::move(event));
}

void OutputEventWriter::text(OutputEvent::Kind kind, std::string_view bytes, int32_t tool_index) {
  if (bytes.empty()) return;
  if (kind != kind_ || tool_index != tool_index_) flush(true);
  kind_ = kind;
  tool_index_ = tool_index;
  pending_ += bytes;
}

void OutputEventWriter::flush(bool all) {
  const size_t keep = unfinished_bytes(pending_);
  std::string text = pending_.substr(0, pending_.size() - keep);
  if (all && keep > 0) text += "\xEF\xBF\xBD";
  pending_ = all ? std::string() : pending_.substr(pending_.size() - keep);
  if (!text.empty()) emit({kind_, std::move(text), tool_index_, {}, {}, 0, 0});
}

void OutputEventWriter::tool_begin(int32_t tool_index, std::string_view full_name) {
  flush(true);
  const size_t at = full_name.find("::");
  const bool plain = at == std::string_view::npos;
  emit({OutputEvent::Kind::tool_begin,
        {},
        tool_index,
        std::string(plain ? full_name : full_name.substr(at + 2)),
        std::string(plain ? std::string_view() : full_name.substr(0, at)),
        0,
        0});
}

void OutputEventWriter::tool_end(int32_t tool_index) {
  flush(true);
  emit({OutputEvent::Kind::tool_end, {}, tool_index, {}, {}, 0, 0});
}

}  // namespace gannet
