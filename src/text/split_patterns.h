// The regular expressions by which tokenizers cut text into pieces, as hand-written matchers. A pattern is known by
// its exact text; one that is not in the table has no matcher, and a tokenizer that asks for it is refused.
#pragma once

#include <cstddef>
#include <string_view>

namespace gannet {

// Length in bytes of the match that begins at p, 0 for none. `end` is where the text ends. Never reads before p,
// and never matches an empty text. Linear: a scan that goes on after each match looks at every byte a bounded
// number of times.
using PatternMatch = size_t (*)(const char* p, const char* end);

// The matcher of a pattern as it stands in a tokenizer.json (a CR or LF may be written raw or escaped); nullptr for
// an unknown pattern.
PatternMatch find_pattern(std::string_view regex);

// The patterns that formats other than tokenizer.json name.
namespace patterns {
size_t gpt2(const char* p, const char* end);              // GPT-2's, also ByteLevel(use_regex = true)
size_t llama3(const char* p, const char* end);            // groups of up to three digits
size_t qwen2(const char* p, const char* end);             // single digits
size_t qwen35(const char* p, const char* end);            // marks belong to words
size_t numbers_to_three(const char* p, const char* end);  // \p{N}{1,3}
size_t deepseek_cjk(const char* p, const char* end);      // U+4E00-9FA5, Hiragana, Katakana
size_t deepseek_words(const char* p, const char* end);    // the third of DeepSeek-V3
size_t word_or_symbols(const char* p, const char* end);   // \w+|[^\w\s]+ , pre-tokenizer Whitespace
}  // namespace patterns

}  // namespace gannet
