#include "text/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace gannet {
namespace {

constexpr int kCharacters = 256 + 68;  // the alphabet lies in U+0021 .. U+0143

constexpr bool stands_for_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

struct Alphabet {
  std::array<uint16_t, 256> character{};    // byte -> code point
  std::array<int16_t, kCharacters> byte{};  // code point -> byte, or -1
  constexpr Alphabet() {
    for (auto& b : byte) b = -1;
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const int c = stands_for_itself(b) ? b : next++;
      character[static_cast<size_t>(b)] = static_cast<uint16_t>(c);
      byte[static_cast<size_t>(c)] = static_cast<int16_t>(b);
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

int64_t bytes_from_alphabet(std::string_view token, char* out) {
  int64_t n = 0;
  const char* end = token.data() + token.size();
  for (const char* p = token.data(); p < end; ++n) {
    // All characters of the alphabet have one or two bytes in UTF-8.
    auto c = static_cast<unsigned char>(*p++);
    unsigned code_point = c;
    if (c >= 0x80) {
      if (c < 0xC2 || c > 0xC5 || p == end) return -1;
      code_point = (c & 0x1Fu) << 6 | (static_cast<unsigned char>(*p++) & 0x3Fu);
    }
    if (code_point >= kCharacters || kAlphabet.byte[code_point] < 0) return -1;
    out[n] = static_cast<char>(kAlphabet.byte[code_point]);
  }
  return n;
}

std::optional<std::string> bytes_from_alphabet(std::string_view token) {
  std::string bytes(token.size(), '\0');
  const int64_t n = bytes_from_alphabet(token, bytes.data());
  if (n < 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(n));
  return bytes;
}

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string token;
  token.reserve(bytes.size() * 2);
  for (const char b : bytes) append_utf8(token, kAlphabet.character[static_cast<unsigned char>(b)]);
  return token;
}

}  // namespace gannet
