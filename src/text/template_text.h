// A string of a chat template that knows, byte by byte, who wrote it. Every operation of the template language
// keeps that knowledge, so what a render returns can be told apart exactly: the template's text and the client's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "text/span.h"

namespace gannet {

using TextOwner = TextSpan::Owner;

class TemplateText {
 public:
  // All bytes before `end`, back to the previous run's end, have this owner.
  struct Run {
    size_t end;
    TextOwner owner;
  };

  TemplateText() = default;
  TemplateText(std::string_view bytes, TextOwner owner) { append(bytes, owner); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  const std::vector<Run>& runs() const { return runs_; }
  TextOwner owner_at(size_t byte) const;
  bool any_client() const;

  void append(std::string_view bytes, TextOwner owner);
  void append(const TemplateText& other) { append_range(other, 0, other.size()); }
  // Bytes [begin, end) of another text, owners included.
  void append_range(const TemplateText& other, size_t begin, size_t end);
  TemplateText sub(size_t begin, size_t end) const;

 private:
  std::string bytes_;
  std::vector<Run> runs_;  // ends rise; neighbours differ in owner
};

// Code points, by their first byte. In ill-formed text every byte that is no continuation byte starts one.
inline bool starts_code_point(char c) { return !is_utf8_continuation(c); }
// Byte offset of code point `index`, or text.size() when there are fewer.
size_t code_point_offset(std::string_view text, int64_t index);
// The code point that starts at byte `i` and, in `length`, its bytes; ill-formed bytes give themselves, 1 byte
// each.
uint32_t code_point_at(std::string_view text, size_t i, size_t& length);
// White space as Python's str.isspace() sees it.
bool is_python_space(uint32_t code_point);

}  // namespace gannet
