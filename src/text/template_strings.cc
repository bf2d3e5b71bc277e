#include "text/template_strings.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "text/unicode.h"

namespace gannet {
namespace {

bool is_letter_or_digit(uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
      return true;
    default:
      return false;
  }
}

// Maps every character by `map(code point, index of it)`, owners kept.
template <class Map>
TemplateText map_characters(const TemplateText& text, Map map) {
  TemplateText out;
  const std::string& bytes = text.bytes();
  std::string piece;
  size_t index = 0;
  for (size_t i = 0, n = 0; i < bytes.size(); i += n) {
    const uint32_t c = code_point_at(bytes, i, n);
    const uint32_t mapped = map(c, index++);
    if (mapped == c) {
      out.append_range(text, i, i + n);
      continue;
    }
    piece.clear();
    append_utf8(piece, char32_t{mapped});
    out.append(piece, text.owner_at(i));
  }
  return out;
}

uint32_t upper(uint32_t c) {
  return c < 0x80 ? (c >= 'a' && c <= 'z' ? c - 32 : c)
                  : static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
uint32_t lower(uint32_t c) {
  return c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c)
                  : static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
uint32_t title(uint32_t c) {
  return c < 0x80 ? upper(c) : static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

bool stripped(const std::string* chars, uint32_t c, std::string_view spelled) {
  return chars == nullptr ? is_python_space(c) : chars->find(spelled) != std::string::npos;
}

}  // namespace

TemplateText strip_text(const TemplateText& text, const std::string* chars, bool left, bool right) {
  const std::string& bytes = text.bytes();
  size_t begin = 0, end = bytes.size();
  for (size_t n = 0; left && begin < end; begin += n) {
    const uint32_t c = code_point_at(bytes, begin, n);
    if (!stripped(chars, c, std::string_view(bytes).substr(begin, n))) break;
  }
  while (right && end > begin) {
    size_t at = end - 1, n = 0;
    while (at > begin && !starts_code_point(bytes[at])) --at;
    const uint32_t c = code_point_at(bytes, at, n);
    if (at + n != end || !stripped(chars, c, std::string_view(bytes).substr(at, n))) break;
    end = at;
  }
  return text.sub(begin, end);
}

TemplateText upper_text(const TemplateText& text) {
  return map_characters(text, [](uint32_t c, size_t) { return upper(c); });
}

TemplateText lower_text(const TemplateText& text) {
  return map_characters(text, [](uint32_t c, size_t) { return lower(c); });
}

TemplateText capitalize_text(const TemplateText& text) {
  return map_characters(text, [](uint32_t c, size_t i) { return i == 0 ? title(c) : lower(c); });
}

TemplateText title_text(const TemplateText& text, bool jinja) {
  bool in_word = false;
  return map_characters(text, [&](uint32_t c, size_t) {
    const uint32_t mapped = in_word ? lower(c) : title(c);
    if (jinja)
      in_word = !(c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_python_space(c));
    else
      in_word = is_letter_or_digit(c);
    return mapped;
  });
}

std::vector<size_t> find_all(TemplateInterpreter& in, std::string_view text, std::string_view needle, int64_t limit,
                             bool from_right) {
  std::vector<size_t> found;
  const auto n = static_cast<int64_t>(text.size()), m = static_cast<int64_t>(needle.size());
  if (needle.empty() || !in.charge(n / 64 + n / 64 * m / 64)) return found;
  size_t at = from_right ? text.rfind(needle) : text.find(needle);
  while (at != std::string_view::npos && (limit < 0 || static_cast<int64_t>(found.size()) < limit)) {
    if (!in.charge(1) || !in.charge_bytes(sizeof(size_t))) break;
    found.push_back(at);
    if (from_right)
      at = at < needle.size() ? std::string_view::npos : text.rfind(needle, at - needle.size());
    else
      at = text.find(needle, at + needle.size());
  }
  if (from_right) std::ranges::reverse(found);
  return found;
}

TemplateText replace_text(TemplateInterpreter& in, const TemplateText& text, std::string_view from,
                          const TemplateText& to, int64_t limit) {
  TemplateText out;
  size_t copied = 0;
  std::vector<size_t> places;
  if (from.empty()) {  // Python puts the new text before every character and at the end
    const std::string& bytes = text.bytes();
    for (size_t i = 0; i <= bytes.size(); ++i)
      if (i == bytes.size() || starts_code_point(bytes[i])) places.push_back(i);
    if (limit >= 0 && static_cast<int64_t>(places.size()) > limit) places.resize(static_cast<size_t>(limit));
  } else {
    places = find_all(in, text.bytes(), from, limit);
  }
  int64_t added = 0;
  if (__builtin_mul_overflow(static_cast<int64_t>(places.size()), static_cast<int64_t>(to.size()), &added))
    added = INT64_MAX;
  if (!in.charge_bytes(added) || !in.charge_bytes(static_cast<int64_t>(text.size()))) return out;
  for (const size_t place : places) {
    out.append_range(text, copied, place);
    out.append(to);
    copied = place + from.size();
  }
  out.append_range(text, copied, text.size());
  return out;
}

std::vector<TemplateText> split_lines(const TemplateText& text) {
  std::vector<TemplateText> lines;
  const std::string& bytes = text.bytes();
  size_t begin = 0;
  for (size_t i = 0, n = 0; i < bytes.size(); i += n) {
    const uint32_t c = code_point_at(bytes, i, n);
    const bool ends =
        (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    lines.push_back(text.sub(begin, i));
    if (c == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n') n = 2;
    begin = i + n;
  }
  if (begin < bytes.size()) lines.push_back(text.sub(begin, bytes.size()));
  return lines;
}

const TemplateText* text_argument(TemplateInterpreter& in, const TemplateValue* value, std::string_view function) {
  if (value != nullptr && value->is_text()) return value->text.get();
  in.fail(
      fmt::format("{}: expected a string, got {}", function, value == nullptr ? "nothing" : value->kind_name()));
  return nullptr;
}

int64_t integer_argument(TemplateInterpreter& in, const TemplateValue* value, int64_t absent,
                         std::string_view function) {
  if (value == nullptr || value->is_none()) return absent;
  if (value->is_integer()) return value->integer;
  in.fail(fmt::format("{}: expected an integer, got {}", function, value->kind_name()));
  return absent;
}

}  // namespace gannet
