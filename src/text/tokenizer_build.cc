// The steps of loading that both file formats share.
#include <fmt/format.h>
#include <algorithm>

#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace gannet {
namespace {

bool all_white_space(std::string_view text) {
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Char c = char_at(p, end);
    if (!c.is(kSpace)) return false;
    p += c.size;
  }
  return !text.empty();
}

// A character that the model spells text with: it cannot be kept out of text.
bool is_base_symbol(const Vocabulary& vocabulary, std::string_view content, int32_t id) {
  if (content.empty() || vocabulary.find_model(content) != id) return false;
  if (vocabulary.byte_level()) return content.size() == 1;
  return char_at(content.data(), content.data() + content.size()).size == content.size();
}

}  // namespace

Status Tokenizer::Impl::set_added(std::vector<Added> added) {
  std::vector<char> verbatim;
  for (Added& token : added) {
    AddedTokens::Entry& entry = token.entry;
    if (entry.content.empty()) continue;
    GANNET_TRY(vocabulary.add_added(entry.content, entry.id, token.special));
    if (!token.verbatim) continue;
    if (static_cast<int32_t>(verbatim.size()) < vocabulary.size())
      verbatim.resize(static_cast<size_t>(vocabulary.size()));
    verbatim[static_cast<size_t>(entry.id)] = 1;
  }
  if (!vocabulary.byte_level()) {
    set_decoded(verbatim);
    for (const Added& token : added)  // what is found in normalized text is given back as found there
      if (token.normalized && !token.entry.content.empty())
        put_decoded(token.entry.id, decode.apply(normalizer.apply(token.entry.content)));
  }
  std::vector<AddedTokens::Entry> raw, in_normalized;
  for (Added& token : added) {
    AddedTokens::Entry& entry = token.entry;
    if (entry.content.empty()) continue;
    const bool blank = !token.special && all_white_space(bytes(entry.id));
    entry.text = blank || is_base_symbol(vocabulary, entry.content, entry.id);
    if (!entry.text) vocabulary.set(entry.id, Token::kControl);
    if (!token.normalized) {
      raw.push_back(std::move(entry));
    } else {
      entry.content = normalizer.apply(entry.content);
      in_normalized.push_back(std::move(entry));
    }
  }
  GANNET_ASSIGN(raw_added, AddedTokens::build(std::move(raw)));
  GANNET_ASSIGN(normalized_added, AddedTokens::build(std::move(in_normalized)));
  return ok();
}

void Tokenizer::Impl::set_decoded(const std::vector<char>& verbatim) {
  decoded.assign(static_cast<size_t>(vocabulary.size()), {0, 0});
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.has(id)) continue;
    const std::string_view token = vocabulary.bytes(id);
    const auto at = static_cast<size_t>(id);
    if (decode.byte_tokens && byte_of_token(token) >= 0) vocabulary.set(id, Token::kByte);
    const bool as_is = at < verbatim.size() && verbatim[at] != 0;
    put_decoded(id, as_is ? std::string(token) : decode.apply(token));
  }
}

void Tokenizer::Impl::put_decoded(int32_t id, std::string_view text) {
  decoded[static_cast<size_t>(id)] = {static_cast<uint32_t>(decoded_arena.size()),
                                      static_cast<uint32_t>(text.size())};
  decoded_arena += text;
}

void Tokenizer::Impl::add_known_eos() {
  for (const std::string_view name :
       {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>"}) {
    const int32_t id = vocabulary.find_spelling(name);
    if (id >= 0 && vocabulary.at(id).has(Token::kSpecial)) eos.push_back(id);
  }
}

void Tokenizer::Impl::finish() {
  std::sort(eos.begin(), eos.end());
  eos.erase(std::unique(eos.begin(), eos.end()), eos.end());
}

}  // namespace gannet
