// The GPT-2 byte alphabet: byte-level vocabularies write each byte as one printable character. Bytes that are
// printable in Latin-1 (33-126, 161-172, 174-255) stand for themselves, the other 68 follow from U+0100 in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gannet {

// The bytes that a token in this alphabet spells; nothing when a character of it is outside the alphabet.
std::optional<std::string> bytes_from_alphabet(std::string_view token);
// The same, written to `out`, which has room for token.size() bytes. Returns the count, or -1.
int64_t bytes_from_alphabet(std::string_view token, char* out);

// The token that spells these bytes.
std::string bytes_to_alphabet(std::string_view bytes);

}  // namespace gannet
