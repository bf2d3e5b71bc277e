#include "text/tokenizer.h"

#include <algorithm>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/tokenizer_impl.h"

namespace gannet {

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const std::string client(text.size(), options.parse_special ? '\0' : '\1');
  std::vector<int32_t> ids;
  impl_->encode(text, client, options.add_special, ids);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_spans(std::span<const TextSpan> spans, bool add_special) const {
  std::string text, client;
  for (const TextSpan& span : spans) {
    text += span.text;
    client.append(span.text.size(), span.owner == TextSpan::Owner::client_owned ? '\1' : '\0');
  }
  std::vector<int32_t> ids;
  impl_->encode(text, client, add_special, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  Detokenizer detokenizer(*this, {.skip_special = skip_special});
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  return text + detokenizer.flush();
}

int32_t Tokenizer::n_vocab() const { return impl_->vocabulary.size(); }
bool Tokenizer::has_token(int32_t id) const { return impl_->vocabulary.has(id); }
std::string_view Tokenizer::token_bytes(int32_t id) const {
  return has_token(id) ? impl_->bytes(id) : std::string_view();
}
std::string Tokenizer::token_text(int32_t id) const {
  return has_token(id) ? impl_->vocabulary.spelling(id) : std::string();
}
std::optional<int32_t> Tokenizer::token_id(std::string_view token_text) const {
  const int32_t id = impl_->vocabulary.find_spelling(token_text);
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}
bool Tokenizer::is_control(int32_t id) const {
  return has_token(id) && impl_->vocabulary.at(id).has(Token::kControl);
}
bool Tokenizer::is_special(int32_t id) const {
  return has_token(id) && impl_->vocabulary.at(id).has(Token::kSpecial);
}
std::optional<int32_t> Tokenizer::bos_id() const { return impl_->bos; }
std::optional<int32_t> Tokenizer::pad_id() const { return impl_->pad; }
const std::vector<int32_t>& Tokenizer::eos_ids() const { return impl_->eos; }
const std::vector<int32_t>& Tokenizer::prefix_ids() const { return impl_->prefix; }
const std::vector<int32_t>& Tokenizer::suffix_ids() const { return impl_->suffix; }
bool Tokenizer::is_byte_level() const { return impl_->vocabulary.byte_level(); }

std::string_view Tokenizer::Impl::bytes(int32_t id) const {
  if (decoded.empty()) return vocabulary.bytes(id);
  const auto [begin, size] = decoded[static_cast<size_t>(id)];
  return std::string_view(decoded_arena).substr(begin, size);
}

void Tokenizer::Impl::encode(std::string_view text, std::string_view client, bool add_special,
                             std::vector<int32_t>& out) const {
  GANNET_CHECK(text.size() == client.size(), "{} bytes, {} owners", static_cast<long long>(text.size()),
               static_cast<long long>(client.size()));
  out.reserve(out.size() + text.size() / 3 + 8);
  if (add_special) out.insert(out.end(), prefix.begin(), prefix.end());
  std::vector<AddedTokens::Match> matches;
  raw_added.find(text, client, matches);
  size_t at = 0;
  for (const AddedTokens::Match& match : matches) {
    if (at < match.begin)
      encode_gap(text.substr(at, match.begin - at), client.substr(at, match.begin - at), at == 0, out);
    out.push_back(match.id);
    at = match.end;
  }
  if (at < text.size()) encode_gap(text.substr(at), client.substr(at), at == 0, out);
  if (add_special) out.insert(out.end(), suffix.begin(), suffix.end());
}

void Tokenizer::Impl::encode_gap(std::string_view text, std::string_view client, bool at_start,
                                 std::vector<int32_t>& out) const {
  OwnedText owned;
  if (!normalizer.empty()) {
    owned = {std::string(text), std::string(client)};
    normalizer.apply(owned);
    text = owned.text;
    client = owned.client;
  }
  std::vector<AddedTokens::Match> matches;
  if (!normalized_added.empty()) normalized_added.find(text, client, matches);
  size_t at = 0;
  for (const AddedTokens::Match& match : matches) {
    if (at < match.begin) encode_pieces(text.substr(at, match.begin - at), at_start && at == 0, out);
    out.push_back(match.id);
    at = match.end;
  }
  if (at < text.size()) encode_pieces(text.substr(at), at_start && at == 0, out);
}

void Tokenizer::Impl::encode_pieces(std::string_view text, bool at_start, std::vector<int32_t>& out) const {
  class Sink final : public PieceSink {
   public:
    Sink(const Impl& impl, std::vector<int32_t>& ids) : impl_(impl), ids_(ids) {}
    void piece(std::string_view piece) override {
      if (impl_.ranked) {
        impl_.ranked->encode(piece, ids_);
      } else {
        impl_.scored->encode(piece, ids_);
      }
    }

   private:
    const Impl& impl_;
    std::vector<int32_t>& ids_;
  };
  Sink sink(*this, out);
  pre_tokenizer.split(text, at_start, sink);
}

}  // namespace gannet
