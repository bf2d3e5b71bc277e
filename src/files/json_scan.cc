#include "files/json_scan.h"

#include <limits>

#include "base/utf8.h"

namespace gannet::files {
namespace {

bool is_scalar_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

}  // namespace

void JsonScan::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
    ++at_;
  }
}

bool JsonScan::at_end() {
  skip_space();
  return at_ == text_.size();
}

bool JsonScan::peek(char c) {
  skip_space();
  return at_ < text_.size() && text_[at_] == c;
}

bool JsonScan::take(char c) {
  if (!peek(c)) return false;
  ++at_;
  return true;
}

bool JsonScan::hex4(uint32_t& out) {
  if (text_.size() - at_ < 4) return false;
  out = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text_[at_++];
    uint32_t digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<uint32_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<uint32_t>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<uint32_t>(c - 'A') + 10;
    else
      return false;
    out = out << 4 | digit;
  }
  return true;
}

// What follows a backslash.
bool JsonScan::escape(std::string& scratch) {
  if (at_ >= text_.size()) return false;
  switch (text_[at_++]) {
    case '"':
      scratch += '"';
      return true;
    case '\\':
      scratch += '\\';
      return true;
    case '/':
      scratch += '/';
      return true;
    case 'b':
      scratch += '\b';
      return true;
    case 'f':
      scratch += '\f';
      return true;
    case 'n':
      scratch += '\n';
      return true;
    case 'r':
      scratch += '\r';
      return true;
    case 't':
      scratch += '\t';
      return true;
    case 'u': {
      uint32_t c = 0, low = 0;
      if (!hex4(c) || (c >= 0xDC00 && c <= 0xDFFF)) return false;
      if (c >= 0xD800 && c <= 0xDBFF) {
        if (text_.substr(at_, 2) != "\\u") return false;
        at_ += 2;
        if (!hex4(low) || low < 0xDC00 || low > 0xDFFF) return false;
        c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00));
      }
      append_utf8(scratch, c);
      return true;
    }
    default:
      return false;
  }
}

bool JsonScan::string(std::string_view& out, std::string& scratch) {
  if (!take('"')) return false;
  const size_t begin = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      out = text_.substr(begin, at_ - begin);
      ++at_;
      return true;
    }
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c == '\\') break;
    ++at_;
  }
  scratch.assign(text_.substr(begin, at_ - begin));
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') {
      out = scratch;
      return true;
    }
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c != '\\')
      scratch += c;
    else if (!escape(scratch))
      return false;
  }
  return false;
}

bool JsonScan::unsigned_integer(uint64_t& out) {
  skip_space();
  const size_t begin = at_;
  out = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    const auto digit = static_cast<uint64_t>(text_[at_] - '0');
    if (out > (std::numeric_limits<uint64_t>::max() - digit) / 10) return false;
    out = out * 10 + digit;
    ++at_;
  }
  if (at_ == begin || (text_[begin] == '0' && at_ > begin + 1)) return false;
  return at_ == text_.size() || !is_scalar_byte(text_[at_]);
}

bool JsonScan::skip_value(int max_depth) {
  if (max_depth == 0) return false;
  std::string_view text;
  std::string scratch;
  if (peek('"')) return string(text, scratch);
  const bool object = peek('{');
  if (object || peek('[')) {
    ++at_;
    const char close = object ? '}' : ']';
    if (take(close)) return true;
    do {
      if (object && !(string(text, scratch) && take(':'))) return false;
      if (!skip_value(max_depth - 1)) return false;
    } while (take(','));
    return take(close);
  }
  const size_t begin = at_;
  while (at_ < text_.size() && is_scalar_byte(text_[at_])) ++at_;
  return at_ > begin;
}

}  // namespace gannet::files
