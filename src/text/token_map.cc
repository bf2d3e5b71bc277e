#include "text/token_map.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>

#include "text/byte_alphabet.h"
#include "text/unicode.h"

namespace gannet {
namespace {

bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

// NFKC, then NFD, then without marks, in lower case.
std::string folded(std::string_view text) {
  if (is_ascii(text)) {
    std::string lower(text);
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    return lower;
  }
  const std::string decomposed = normalized(normalized(text, NormalForm::nfkc), NormalForm::nfd);
  std::string out;
  const char* end = decomposed.data() + decomposed.size();
  for (const char* p = decomposed.data(); p < end;) {
    const Char c = char_at(p, end);
    if (!c.is(kMark)) append_lower(out, c.code_point);
    p += c.size;
  }
  return out;
}

// Runs of blank, tab, CR and LF become one blank; then White_Space at both ends goes, unless a single blank is all
// there is.
std::string trimmed(std::string_view text) {
  std::string joined;
  bool in_run = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (blank && !in_run) joined += ' ';
    if (!blank) joined += c;
    in_run = blank;
  }
  if (joined == " ") return joined;
  const char* begin = joined.data();
  const char* end = begin + joined.size();
  while (begin < end && char_at(begin, end).is(kSpace)) begin += char_at(begin, end).size;
  while (begin < end && char_before(begin, end).is(kSpace)) end -= char_before(begin, end).size;
  std::string out(begin, end);
  // The original marks a lone blank with U+E000 and turns every such character back into a blank at the end.
  for (size_t at; (at = out.find("\xEE\x80\x80")) != std::string::npos;) out.replace(at, 3, " ");
  return out;
}

// The text of a token by itself: its bytes through the alphabet, or its spelling where that is outside.
std::string text_of(std::string_view spelling) {
  if (auto bytes = bytes_from_alphabet(spelling)) return *std::move(bytes);
  return std::string(spelling);
}

std::string key_of(const Tokenizer& tokenizer, int32_t id) {
  std::string spelling = tokenizer.token_text(id);
  const std::string text = text_of(spelling);
  if (first_invalid_utf8(text) || text.find(kUtf8Replacement) != std::string::npos) return spelling;
  std::string key = trimmed(folded(text));
  return key.empty() ? text : key;
}

}  // namespace

Result<EngramTokenMap> engram_token_map(const Tokenizer& tokenizer, int32_t n_ids, int32_t want_compressed) {
  if (!tokenizer.is_byte_level())
    return Error{Errc::unsupported, "Engram: the token map needs a byte-level tokenizer"};
  if (n_ids < 0 || n_ids > tokenizer.n_vocab())
    return Error{Errc::bad_file,
                 fmt::format("Engram: the config has {} token ids, the tokenizer {}", n_ids, tokenizer.n_vocab())};
  EngramTokenMap out;
  out.compressed.reserve(static_cast<size_t>(n_ids));
  std::unordered_map<std::string, int32_t> index;
  index.reserve(static_cast<size_t>(n_ids));
  for (int32_t id = 0; id < n_ids; ++id) {
    if (!tokenizer.has_token(id)) return Error{Errc::bad_file, fmt::format("Engram: id {} has no token", id)};
    const auto [entry, is_new] = index.try_emplace(key_of(tokenizer, id), out.n_compressed);
    if (is_new) ++out.n_compressed;
    out.compressed.push_back(entry->second);
  }
  if (want_compressed != 0 && out.n_compressed != want_compressed)
    return Error{
        Errc::bad_file,
        fmt::format("Engram: {} token ids compress to {}, but the config says {}: tokenizer and checkpoint do not "
                    "belong together",
                    n_ids, out.n_compressed, want_compressed)};
  return out;
}

}  // namespace gannet
