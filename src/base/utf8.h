// UTF-8 as the Unicode Standard has it (table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gannet {

// U+FFFD, which stands for bytes that are no character.
inline constexpr std::string_view kUtf8Replacement = "\xEF\xBF\xBD";

// What stands at the front of a non-empty byte range.
struct Utf8Step {
  enum class Kind : uint8_t {
    character,  // a code point of `size` bytes
    truncated,  // all `size` bytes that are left begin a character and do not end it
    ill_formed  // `size` bytes (at least 1) that begin no character: one maximal subpart
  };
  Kind kind;
  uint8_t size;
  char32_t code_point;  // of a character
};
Utf8Step utf8_step(const char* p, const char* end);

// Byte offset of the first byte that is not part of a well-formed character; nothing when all is well-formed.
std::optional<size_t> first_invalid_utf8(std::string_view text);

// Appends a code point of at most U+10FFFF.
void append_utf8(std::string& out, char32_t code_point);

// A byte that stands inside a character, not at its front.
inline bool is_utf8_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Characters of well-formed text; in any text, bytes that are no continuation.
int64_t count_code_points(std::string_view text);

// The longest front of at most `max_bytes` that does not end inside a character of well-formed text.
std::string_view utf8_prefix(std::string_view text, size_t max_bytes);

// Number of bytes (0 to 3) at the end that begin a character and do not end it.
size_t utf8_unfinished_bytes(std::string_view text);

}  // namespace gannet
