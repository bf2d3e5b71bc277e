#include "text/split_patterns.h"

#include <string>

#include "text/unicode.h"

namespace gannet {
namespace {

// End of the run of characters with one of these bits that begins at p.
const char* skip(const char* p, const char* end, unsigned any_of) {
  while (p < end) {
    const Char c = char_at(p, end);
    if (!c.is(any_of)) break;
    p += c.size;
  }
  return p;
}
// The same for characters with none of these bits.
const char* skip_not(const char* p, const char* end, unsigned none_of) {
  while (p < end) {
    const Char c = char_at(p, end);
    if (c.is(none_of)) break;
    p += c.size;
  }
  return p;
}

size_t length(const char* from, const char* to) { return static_cast<size_t>(to - from); }

// 's|'t|'re|'ve|'m|'ll|'d at p, which is an apostrophe. `fold`: case-insensitive; the long s folds to s.
size_t contraction(const char* p, const char* end, bool fold) {
  const auto at = [&](ptrdiff_t i) -> char {
    if (end - p <= i) return 0;
    const char c = p[i];
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = at(1), second = at(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
    return 3;
  if (fold && first == '\xC5' && second == '\xBF') return 3;  // U+017F
  return 0;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at p, which is white space. `newlines`: with the first alternative.
size_t blanks(const char* p, const char* end, bool newlines) {
  const char* stop = p;
  const char* last = p;           // start of the run's last character
  const char* after_newline = p;  // behind the run's last CR or LF
  while (stop < end) {
    const Char c = char_at(stop, end);
    if (!c.is(kSpace)) break;
    last = stop;
    stop += c.size;
    if (c.is(kNewline)) after_newline = stop;
  }
  if (newlines && after_newline > p) return length(p, after_newline);
  if (stop == end || last == p) return length(p, stop);
  return length(p, last);
}

// [^\r\n\p{L}\p{N}]?W+ , where W has the bits `word`; `not_before` are the bits that the optional character lacks.
size_t word(const char* p, const char* end, const Char& c, unsigned word_bits, unsigned not_before) {
  const char* next = p + c.size;
  if (!c.is(not_before) && next < end && char_at(next, end).is(word_bits))
    return length(p, skip(next, end, word_bits));
  if (c.is(word_bits)) return length(p, skip(next, end, word_bits));
  return 0;
}

//  ?[...]+[\r\n]* : an optional blank, characters with none of `none_of` (which holds kSpace), then line ends.
size_t symbols(const char* p, const char* end, const Char& c, unsigned none_of, bool newlines) {
  const char* start = c.code_point == ' ' ? p + 1 : p;
  const char* stop = skip_not(start, end, none_of);
  if (stop == start) return 0;
  return length(p, newlines ? skip(stop, end, kNewline) : stop);
}

// At most `most` characters with one of these bits.
size_t up_to(const char* p, const char* end, unsigned any_of, int most) {
  const char* stop = p;
  for (int i = 0; i < most && stop < end; ++i) {
    const Char c = char_at(stop, end);
    if (!c.is(any_of)) break;
    stop += c.size;
  }
  return length(p, stop);
}

// The patterns of Llama 3 and Qwen, which differ in the digits of a group and in what belongs to a word.
size_t llama3_like(const char* p, const char* end, int digits, unsigned word_bits) {
  const Char c = char_at(p, end);
  if (c.code_point == '\'')
    if (const size_t n = contraction(p, end, true)) return n;
  if (const size_t n = word(p, end, c, word_bits, kNewline | kLetter | kNumber)) return n;
  if (c.is(kNumber)) return up_to(p, end, kNumber, digits);
  if (const size_t n = symbols(p, end, c, kSpace | kNumber | word_bits, true)) return n;
  return c.is(kSpace) ? blanks(p, end, true) : 0;
}

bool in(char32_t c, char32_t low, char32_t high) { return c >= low && c <= high; }

// \s?X+ : one optional white-space character, then a run of X.
template <class Is>
size_t spaced_run(const char* p, const char* end, Is is) {
  const auto run = [&](const char* from) {
    while (from < end) {
      const Char c = char_at(from, end);
      if (!is(c)) break;
      from += c.size;
    }
    return from;
  };
  const Char c = char_at(p, end);
  if (c.is(kSpace)) {
    const char* stop = run(p + c.size);
    if (stop > p + c.size) return length(p, stop);
  }
  return length(p, run(p));
}
template <class Is>
size_t plain_run(const char* p, const char* end, Is is) {
  const char* stop = p;
  while (stop < end) {
    const Char c = char_at(stop, end);
    if (!is(c)) break;
    stop += c.size;
  }
  return length(p, stop);
}

size_t one_newline(const char* p, const char*) { return *p == '\r' || *p == '\n' ? 1 : 0; }
size_t one_number(const char* p, const char* end) { return up_to(p, end, kNumber, 1); }
size_t numbers(const char* p, const char* end) { return length(p, skip(p, end, kNumber)); }
size_t spaced_letters(const char* p, const char* end) {
  return spaced_run(p, end, [](const Char& c) { return c.is(kLetter); });
}
size_t spaced_punctuation(const char* p, const char* end) {
  return spaced_run(p, end, [](const Char& c) { return c.is(kPunctuation); });
}
// DeepSeek Coder and LLM: U+4E00-9FA5, U+0800-4E00, Hangul.
size_t old_deepseek_cjk(const char* p, const char* end) {
  return plain_run(
      p, end, [](const Char& c) { return in(c.code_point, 0x800, 0x9FA5) || in(c.code_point, 0xAC00, 0xD7FF); });
}

struct Known {
  std::string_view regex;
  PatternMatch match;
};
constexpr Known kKnown[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", patterns::gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     patterns::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     patterns::qwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     patterns::qwen35},
    {R"(\p{N}{1,3})", patterns::numbers_to_three},
    {"[一-龥぀-ゟ゠-ヿ]+", patterns::deepseek_cjk},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     patterns::deepseek_words},
    {R"(\w+|[^\w\s]+)", patterns::word_or_symbols},
    {R"([\r\n])", one_newline},
    {R"(\s?\p{L}+)", spaced_letters},
    {R"(\s?\p{P}+)", spaced_punctuation},
    {"[一-龥ࠀ-一가-퟿]+", old_deepseek_cjk},
    {R"(\p{N})", one_number},
    {R"(\p{N}+)", numbers},
};

}  // namespace

namespace patterns {

size_t gpt2(const char* p, const char* end) {
  const Char c = char_at(p, end);
  if (c.code_point == '\'')
    if (const size_t n = contraction(p, end, false)) return n;
  const char* start = c.code_point == ' ' && p + 1 < end ? p + 1 : p;
  const Char first = start == p ? c : char_at(start, end);
  for (const unsigned bits : {unsigned{kLetter}, unsigned{kNumber}})
    if (first.is(bits)) return length(p, skip(start, end, bits));
  if (!first.is(kSpace)) return length(p, skip_not(start, end, kSpace | kLetter | kNumber));
  return blanks(p, end, false);
}

size_t llama3(const char* p, const char* end) { return llama3_like(p, end, 3, kLetter); }
size_t qwen2(const char* p, const char* end) { return llama3_like(p, end, 1, kLetter); }
size_t qwen35(const char* p, const char* end) { return llama3_like(p, end, 1, kLetter | kMark); }
size_t numbers_to_three(const char* p, const char* end) { return up_to(p, end, kNumber, 3); }

size_t deepseek_cjk(const char* p, const char* end) {
  return plain_run(
      p, end, [](const Char& c) { return in(c.code_point, 0x4E00, 0x9FA5) || in(c.code_point, 0x3040, 0x30FF); });
}

size_t deepseek_words(const char* p, const char* end) {
  const Char c = char_at(p, end);
  const char* next = p + c.size;
  if (c.is(kAsciiPunctuation) && next < end && char_at(next, end).is(kAsciiLetter))
    return length(p, skip(next, end, kAsciiLetter));
  if (const size_t n = word(p, end, c, kLetter | kMark, kNewline | kLetter | kPunctuation | kSymbol)) return n;
  const char* start = c.code_point == ' ' ? next : p;
  const char* stop = skip(start, end, kPunctuation | kSymbol);
  if (stop > start) return length(p, skip(stop, end, kNewline));
  return c.is(kSpace) ? blanks(p, end, true) : 0;
}

size_t word_or_symbols(const char* p, const char* end) {
  if (const size_t n = plain_run(p, end, [](const Char& c) { return is_word_char(c.code_point); })) return n;
  return plain_run(p, end, [](const Char& c) { return !c.is(kSpace) && !is_word_char(c.code_point); });
}

}  // namespace patterns

PatternMatch find_pattern(std::string_view regex) {
  std::string spelled;
  for (const char c : regex) {
    if (c == '\r') {
      spelled += "\\r";
    } else if (c == '\n') {
      spelled += "\\n";
    } else {
      spelled += c;
    }
  }
  for (const Known& known : kKnown)
    if (known.regex == spelled) return known.match;
  return nullptr;
}

}  // namespace gannet
