#include "base/utf8.h"

#include <algorithm>

#include "base/check.h"

namespace gannet {

Utf8Step utf8_step(const char* p, const char* end) {
  using Kind = Utf8Step::Kind;
  const auto lead = static_cast<unsigned char>(*p);
  if (lead < 0x80) return {Kind::character, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {Kind::ill_formed, 1, 0};
  const int size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code_point = lead & (0xFFu >> (size + 1));
  for (int i = 1; i < size; ++i) {
    if (p + i == end) return {Kind::truncated, static_cast<uint8_t>(i), 0};
    const auto byte = static_cast<unsigned char>(p[i]);
    const bool good = i == 1 ? byte >= low && byte <= high : is_utf8_continuation(p[i]);
    if (!good) return {Kind::ill_formed, static_cast<uint8_t>(i), 0};
    code_point = code_point << 6 | (byte & 0x3F);
  }
  return {Kind::character, static_cast<uint8_t>(size), code_point};
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Utf8Step step = utf8_step(p, end);
    if (step.kind != Utf8Step::Kind::character) return static_cast<size_t>(p - text.data());
    p += step.size;
  }
  return std::nullopt;
}

void append_utf8(std::string& out, char32_t c) {
  GANNET_CHECK(c <= 0x10FFFF, "code point {}", static_cast<long long>(c));
  const auto push = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    push(c);
  } else if (c < 0x800) {
    push(0xC0 | c >> 6), push(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    push(0xE0 | c >> 12), push(0x80 | (c >> 6 & 0x3F)), push(0x80 | (c & 0x3F));
  } else {
    push(0xF0 | c >> 18), push(0x80 | (c >> 12 & 0x3F)), push(0x80 | (c >> 6 & 0x3F)), push(0x80 | (c & 0x3F));
  }
}

int64_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return !is_utf8_continuation(c); });
}

std::string_view utf8_prefix(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && is_utf8_continuation(text[end])) --end;
  return text.substr(0, end);
}

size_t utf8_unfinished_bytes(std::string_view text) {
  const char* end = text.data() + text.size();
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    if (is_utf8_continuation(end[-static_cast<ptrdiff_t>(n)])) continue;
    return utf8_step(end - n, end).kind == Utf8Step::Kind::truncated ? n : 0;
  }
  return 0;
}

}  // namespace gannet
