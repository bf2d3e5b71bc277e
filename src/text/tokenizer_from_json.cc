// Tokenizer::from_json: a tokenizer out of the tables and components of a tokenizer.json.
#include <fmt/format.h>

#include "files/tokenizer_json.h"
#include "text/components.h"
#include "text/tokenizer_impl.h"

namespace gannet {
namespace {

constexpr size_t kMaxSteps = 32;  // of each component list: the longest that is known has 6

Error bad(std::string message) { return {Errc::bad_file, "tokenizer.json: " + std::move(message)}; }

Status check_lengths(const files::TokenizerJson& file) {
  const std::pair<std::string_view, size_t> lists[] = {{"normalizer", file.normalizers.size()},
                                                       {"pre_tokenizer", file.pre_tokenizers.size()},
                                                       {"post_processor", file.post_processors.size()},
                                                       {"decoder", file.decoders.size()}};
  for (const auto& [name, n] : lists)
    if (n > kMaxSteps)
      return Error{Errc::unsupported,
                   fmt::format("tokenizer.json: {} has {} steps, more than {}", name, n, kMaxSteps)};
  if (file.decoders.empty())
    return Error{Errc::unsupported,
                 "tokenizer.json: decoder: none is given, and joining tokens by blanks is not implemented"};
  return ok();
}

Status fill_vocabulary(const files::TokenizerJson& file, Tokenizer::Impl& impl) {
  size_t n_bytes = 0;
  for (const auto& entry : file.vocab) n_bytes += entry.token.size();
  for (const auto& token : file.added_tokens) n_bytes += token.content.size();
  impl.vocabulary.reserve(file.vocab.size() + file.added_tokens.size(), n_bytes);
  for (const auto& entry : file.vocab) {
    if (impl.vocabulary.has(entry.id))
      return bad(fmt::format("model.vocab: '{}' and '{}' both have id {}", impl.vocabulary.spelling(entry.id),
                             entry.token, entry.id));
    GANNET_TRY(impl.vocabulary.add(entry.token, entry.id));
  }
  return ok();
}

Status fill_added(const files::TokenizerJson& file, Tokenizer::Impl& impl) {
  std::vector<Tokenizer::Impl::Added> added;
  for (const auto& token : file.added_tokens) {
    // A token that the model has too keeps the model's id.
    const int32_t known = impl.vocabulary.find_spelling(token.content);
    const int32_t id = known >= 0 ? known : token.id;
    if (known < 0 && impl.vocabulary.has(id))
      return bad(fmt::format("added_tokens: '{}' has id {}, which model.vocab gives to '{}'", token.content, id,
                             impl.vocabulary.spelling(id)));
    added.push_back({.entry = {.id = id,
                               .content = token.content,
                               .single_word = token.single_word,
                               .lstrip = token.lstrip,
                               .rstrip = token.rstrip},
                     .normalized = token.normalized,
                     .special = token.special});
  }
  return impl.set_added(std::move(added));
}

Status fill_model(const files::TokenizerJson& file, Tokenizer::Impl& impl) {
  BpeOptions options{
      .fuse_unk = file.fuse_unk, .byte_fallback = file.byte_fallback, .ignore_merges = file.ignore_merges};
  if (file.unk_token) {
    options.unk_id = impl.vocabulary.find_spelling(*file.unk_token);
    if (options.unk_id < 0)
      return bad(fmt::format("model.unk_token '{}' is not in the vocabulary", *file.unk_token));
  }
  impl.unk = options.unk_id;
  impl.ranked = std::make_unique<RankedBpe>(&impl.vocabulary, options);
  impl.ranked->reserve(file.merges.size());
  for (const auto& merge : file.merges) GANNET_TRY(impl.ranked->add_merge(merge.left, merge.right));
  return ok();
}

// A special token of a TemplateProcessing: its ids.
Status template_ids(const Json& component, const Json& piece, std::vector<int32_t>& out,
                    const Vocabulary& vocabulary) {
  const Json* name = piece.find("id");
  const Json* table = component.find("special_tokens");
  const std::string* text = name == nullptr ? nullptr : name->as_string();
  const Json* entry = text == nullptr || table == nullptr ? nullptr : table->find(*text);
  const Json* ids = entry == nullptr ? nullptr : entry->find("ids");
  if (ids == nullptr || !ids->is_array()) return component_error(component, "a special token has no ids");
  for (const Json& item : ids->items()) {
    const auto id = item.as_int();
    if (!id || *id < 0 || *id > files::kMaxTokenId || !vocabulary.has(static_cast<int32_t>(*id)))
      return component_error(component, fmt::format("special token '{}' has an id without token", *text));
    out.push_back(static_cast<int32_t>(*id));
  }
  return ok();
}

Status read_template(const Json& component, Tokenizer::Impl& impl) {
  const Json* single = component.find("single");
  if (single == nullptr || !single->is_array()) return component_error(component, "no 'single' list");
  bool seen_text = false;
  for (const Json& piece : single->items()) {
    if (const Json* special = piece.find("SpecialToken")) {
      GANNET_TRY(template_ids(component, *special, seen_text ? impl.suffix : impl.prefix, impl.vocabulary));
    } else if (piece.find("Sequence") != nullptr && !seen_text) {
      seen_text = true;
    } else {
      return component_error(component, "'single' is not special tokens around one sequence");
    }
  }
  if (!seen_text) return component_error(component, "'single' has no sequence");
  return ok();
}

// ["token", id]
Status read_pair(const Json& component, std::string_view field, std::vector<int32_t>& out,
                 const Vocabulary& vocabulary) {
  const Json* pair = component.find(field);
  const auto id = pair != nullptr && pair->items().size() == 2 ? pair->items()[1].as_int() : std::nullopt;
  if (!id || *id < 0 || *id > files::kMaxTokenId || !vocabulary.has(static_cast<int32_t>(*id)))
    return component_error(component, fmt::format("'{}' is no token with its id", field));
  out.push_back(static_cast<int32_t>(*id));
  return ok();
}

Status read_post_processor(const Json& component, Tokenizer::Impl& impl) {
  const std::string& type = *component.find("type")->as_string();
  if (type == "ByteLevel") return ok();  // moves offsets only
  const bool pairs = type == "BertProcessing" || type == "RobertaProcessing";
  if (!pairs && type != "TemplateProcessing")
    return component_error(component, "this post_processor is not implemented");
  if (!impl.prefix.empty() || !impl.suffix.empty())
    return component_error(component, "a second post_processor that adds tokens is not implemented");
  if (!pairs) return read_template(component, impl);
  GANNET_TRY(read_pair(component, "cls", impl.prefix, impl.vocabulary));
  return read_pair(component, "sep", impl.suffix, impl.vocabulary);
}

// The id of a token that tokenizer_config.json names: a string, or an object with "content".
std::optional<int32_t> config_token(const Json& config, std::string_view field, const Vocabulary& vocabulary) {
  const Json* value = config.find(field);
  if (value != nullptr && value->is_object()) value = value->find("content");
  const std::string* text = value == nullptr ? nullptr : value->as_string();
  const int32_t id = text == nullptr ? -1 : vocabulary.find_spelling(*text);
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

// add_bos_token and add_eos_token, where given, have the last word about the first and the last added id.
Status apply_flag(const Json& config, std::string_view field, std::optional<int32_t> id, bool front,
                  std::vector<int32_t>& ids) {
  const Json* value = config.find(field);
  const auto flag = value == nullptr ? std::nullopt : value->as_bool();
  if (!flag) return ok();
  if (*flag && !id)
    return Error{Errc::bad_file,
                 fmt::format("tokenizer_config.json: {} is true, but its token is not in the vocabulary", field)};
  const bool there = id && !ids.empty() && (front ? ids.front() : ids.back()) == *id;
  if (*flag == there) return ok();
  if (*flag) {
    ids.insert(front ? ids.begin() : ids.end(), *id);
  } else if (there) {
    ids.erase(front ? ids.begin() : ids.end() - 1);
  }
  return ok();
}

Status apply_config(std::string_view text, Tokenizer::Impl& impl) {
  auto config = Json::parse(text);
  if (!config) return Error{Errc::bad_file, "tokenizer_config.json: " + config.error().message};
  if (!config->is_object()) return Error{Errc::bad_file, "tokenizer_config.json: not an object"};
  const auto eos = config_token(*config, "eos_token", impl.vocabulary);
  impl.bos = config_token(*config, "bos_token", impl.vocabulary);
  impl.pad = config_token(*config, "pad_token", impl.vocabulary);
  if (eos) impl.eos.push_back(*eos);
  GANNET_TRY(apply_flag(*config, "add_bos_token", impl.bos, true, impl.prefix));
  return apply_flag(*config, "add_eos_token", eos, false, impl.suffix);
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(std::string_view tokenizer_json, std::string_view tokenizer_config) {
  GANNET_ASSIGN(const files::TokenizerJson file, files::parse_tokenizer_json(tokenizer_json));
  GANNET_TRY(check_lengths(file));
  GANNET_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::from_components(file.pre_tokenizers));
  auto impl = std::make_unique<Impl>(pre_tokenizer.byte_level());
  impl->pre_tokenizer = std::move(pre_tokenizer);
  GANNET_ASSIGN(impl->normalizer, Normalizer::from_components(file.normalizers));
  if (impl->normalizer.cuts_front() && impl->pre_tokenizer.minds_start())
    return Error{Errc::unsupported,
                 "tokenizer.json: a Strip on the left before a Metaspace with prepend_scheme 'first' "
                 "is not implemented"};
  GANNET_ASSIGN(impl->decode, DecodeRules::from_components(file.decoders));
  if (impl->decode.byte_level != impl->vocabulary.byte_level())
    return Error{Errc::unsupported,
                 "tokenizer.json: ByteLevel must be both in pre_tokenizer and decoder, or in neither"};
  GANNET_TRY(fill_vocabulary(file, *impl));
  GANNET_TRY(fill_added(file, *impl));
  GANNET_TRY(fill_model(file, *impl));
  for (const Json& component : file.post_processors) GANNET_TRY(read_post_processor(component, *impl));
  if (!tokenizer_config.empty()) GANNET_TRY(apply_config(tokenizer_config, *impl));
  impl->add_known_eos();
  if (!impl->bos && impl->prefix.size() == 1) impl->bos = impl->prefix.front();
  impl->finish();
  return Tokenizer(std::unique_ptr<const Impl>(std::move(impl)));
}

}  // namespace gannet
