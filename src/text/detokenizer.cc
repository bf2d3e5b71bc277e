#include "text/detokenizer.h"

#include "base/utf8.h"
#include "text/tokenizer_impl.h"

namespace gannet {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, DetokenizeOptions options)
    : tokenizer_(&tokenizer), options_(options) {
  start();
}

void Detokenizer::start() {
  first_ = options_.text_start;
  strip_left_ = options_.text_start ? tokenizer_->impl().decode.strip_count : 0;
  pending_.clear();
}

std::string Detokenizer::push(int32_t id) {
  std::string out;
  if (!tokenizer_->has_token(id) || (options_.skip_special && tokenizer_->is_special(id))) return out;
  const DecodeRules& rules = tokenizer_->impl().decode;
  std::string_view bytes = tokenizer_->token_bytes(id);
  std::string first;
  if (first_ && !rules.mark.empty()) {
    first = rules.apply(replace_all(tokenizer_->token_text(id), rules.mark, ""));
    bytes = first;
  }
  first_ = false;
  while (strip_left_ > 0 && bytes.starts_with(rules.strip)) {
    bytes.remove_prefix(rules.strip.size());
    --strip_left_;
  }
  if (!bytes.empty()) strip_left_ = 0;
  append(out, bytes);
  return out;
}

std::string Detokenizer::push_bytes(std::string_view bytes) {
  std::string out;
  if (!bytes.empty()) first_ = false, strip_left_ = 0;
  append(out, bytes);
  return out;
}

std::string Detokenizer::flush() {
  std::string out;
  if (!pending_.empty()) {
    const size_t n = tokenizer_->is_byte_level() ? 1 : pending_.size();
    for (size_t i = 0; i < n; ++i) out += kUtf8Replacement;
  }
  start();
  return out;
}

void Detokenizer::append(std::string& out, std::string_view bytes) {
  const bool each_byte = !tokenizer_->is_byte_level();
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_);
    joined += bytes;
    bytes = joined;
    pending_.clear();
  }
  const char* end = bytes.data() + bytes.size();
  for (const char* p = bytes.data(); p < end;) {
    const Utf8Step step = utf8_step(p, end);
    if (step.kind == Utf8Step::Kind::truncated) {
      pending_.assign(p, step.size);
      return;
    }
    if (step.kind == Utf8Step::Kind::character) {
      out.append(p, step.size);
    } else {
      for (int i = 0; i < (each_byte ? step.size : 1); ++i) out += kUtf8Replacement;
    }
    p += step.size;
  }
}

}  // namespace gannet
