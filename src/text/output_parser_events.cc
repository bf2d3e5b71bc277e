#include "text/output_parser_events.h"

#include <algorithm>

#include "base/utf8.h"

namespace gannet {

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
  const size_t keep = utf8_unfinished_bytes(pending_);
  std::string text = pending_.substr(0, pending_.size() - keep);
  if (all && keep > 0) text += kUtf8Replacement;
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
