#include "text/template_text.h"

#include <algorithm>

namespace gannet {

TextOwner TemplateText::owner_at(size_t byte) const {
  const auto run =
      std::upper_bound(runs_.begin(), runs_.end(), byte, [](size_t at, const Run& r) { return at < r.end; });
  return run == runs_.end() ? TextOwner::client_owned : run->owner;
}

bool TemplateText::any_client() const {
  return std::ranges::any_of(runs_, [](const Run& run) { return run.owner == TextOwner::client_owned; });
}

void TemplateText::append(std::string_view bytes, TextOwner owner) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().owner == owner)
    runs_.back().end = bytes_.size();
  else
    runs_.push_back({bytes_.size(), owner});
}

void TemplateText::append_range(const TemplateText& other, size_t begin, size_t end) {
  auto run = std::upper_bound(other.runs_.begin(), other.runs_.end(), begin,
                              [](size_t at, const Run& r) { return at < r.end; });
  while (begin < end && run != other.runs_.end()) {
    const size_t stop = std::min(end, run->end);
    append(std::string_view(other.bytes_).substr(begin, stop - begin), run->owner);
    begin = stop;
    ++run;
  }
}

TemplateText TemplateText::sub(size_t begin, size_t end) const {
  TemplateText out;
  out.append_range(*this, begin, end);
  return out;
}

size_t code_point_offset(std::string_view text, int64_t index) {
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (!starts_code_point(text[i])) continue;
    if (index-- == 0) return i;
  }
  return i;
}

uint32_t code_point_at(std::string_view text, size_t i, size_t& length) {
  const Utf8Step step = utf8_step(text.data() + i, text.data() + text.size());
  const bool character = step.kind == Utf8Step::Kind::character;
  length = character ? step.size : 1;
  return character ? step.code_point : static_cast<unsigned char>(text[i]);
}

bool is_python_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace gannet
