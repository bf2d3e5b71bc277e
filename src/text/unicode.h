// The Unicode properties that tokenizers ask for (Unicode 14.0, utf8proc 2.8).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace gannet {

// Properties of a character, as bits.
enum CharBits : uint16_t {
  kLetter = 1 << 0,       // general category L
  kMark = 1 << 1,         // M
  kNumber = 1 << 2,       // N
  kPunctuation = 1 << 3,  // P
  kSymbol = 1 << 4,       // S
  kSpace = 1 << 5,        // White_Space
  kNewline = 1 << 6,      // CR, LF
  kAsciiLetter = 1 << 7,
  kAsciiPunctuation = 1 << 8,  // the 32 printable ASCII characters that are no letter, digit or blank
  kCased = 1 << 9,             // Lu, Ll, Lt
};

// A character with its properties. An ill-formed byte is a character of size 1 with code point kIllFormed and no
// property.
inline constexpr char32_t kIllFormed = 0x110000;
struct Char {
  char32_t code_point;
  uint16_t bits;
  uint8_t size;
  bool is(unsigned any_of) const { return (bits & any_of) != 0; }
};

namespace detail {
extern const std::array<uint16_t, 128> kAsciiBits;
Char char_at_slow(const char* p, const char* end);
}  // namespace detail

// The character at p; needs p < end.
inline Char char_at(const char* p, const char* end) {
  const auto byte = static_cast<unsigned char>(*p);
  if (byte < 128) return {byte, detail::kAsciiBits[byte], 1};
  return detail::char_at_slow(p, end);
}
// The character that ends at `end`; needs begin < end.
Char char_before(const char* begin, const char* end);

// A word character of regular expressions (UTS 18: Alphabetic, M, Nd, Pc, Join_Control).
bool is_word_char(char32_t code_point);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
// As of Unicode 9.0, which is what tokenizers are made with: later characters stay as they are, and so do ill-formed
// bytes; nothing composes or moves across either. O(n log n).
std::string normalized(std::string_view text, NormalForm form);

// Full lower-case mapping of each character alone (U+0130 gives two; no final-sigma rule).
void append_lower(std::string& out, char32_t code_point);

}  // namespace gannet
