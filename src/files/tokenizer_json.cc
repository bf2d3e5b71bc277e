#include "files/tokenizer_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstring>

namespace gannet::files {
namespace {

namespace od = simdjson::ondemand;

Error bad(std::string message) { return {Errc::bad_file, "tokenizer.json: " + std::move(message)}; }
Error bad(std::string_view where, simdjson::error_code code) {
  return bad(fmt::format("{}: {}", where, simdjson::error_message(code)));
}

// Copies unescaped strings to where they stay. simdjson's own buffer dies with its parser.
class Storage {
 public:
  explicit Storage(size_t size_bytes) : begin_(new char[size_bytes + 1]), next_(begin_.get()) {}
  // Unescaped strings are never longer than the text they come from, so the sum fits.
  std::string_view keep(std::string_view text) {
    std::memcpy(next_, text.data(), text.size());
    const std::string_view kept(next_, text.size());
    next_ += text.size();
    return kept;
  }
  std::unique_ptr<char[]> release() { return std::move(begin_); }

 private:
  std::unique_ptr<char[]> begin_;
  char* next_;
};

// simdjson's own is_null() throws on a word that merely begins with n.
bool is_null(od::value value) {
  bool null = false;
  return value.is_null().get(null) == simdjson::SUCCESS && null;
}

// true, false, or null for `absent`.
Status read_flag(od::value value, std::string_view where, bool& out) {
  if (is_null(value)) return ok();
  if (const auto code = value.get_bool().get(out)) return bad(where, code);
  return ok();
}

// A string, or null for none.
Status read_text(od::value value, std::string_view where, std::optional<std::string>& out) {
  if (is_null(value)) return ok();
  std::string_view text;
  if (const auto code = value.get_string().get(text)) return bad(where, code);
  out = std::string(text);
  return ok();
}

Status read_id(od::value value, std::string_view where, int32_t& out) {
  int64_t id = 0;
  if (const auto code = value.get_int64().get(id)) return bad(where, code);
  if (id < 0 || id > kMaxTokenId) return bad(fmt::format("{}: id {} is outside 0..{}", where, id, kMaxTokenId));
  out = static_cast<int32_t>(id);
  return ok();
}

Status read_added_token(od::value value, TokenizerJson::AddedToken& out) {
  constexpr std::string_view kWhere = "added_tokens";
  od::object object;
  if (const auto code = value.get_object().get(object)) return bad(kWhere, code);
  bool has_id = false, has_content = false;
  for (auto field : object) {
    std::string_view key;
    if (const auto code = field.unescaped_key().get(key)) return bad(kWhere, code);
    od::value item;
    if (const auto code = field.value().get(item)) return bad(kWhere, code);
    if (key == "id") {
      GANNET_TRY(read_id(item, "added_tokens.id", out.id));
      has_id = true;
    } else if (key == "content") {
      std::optional<std::string> content;
      GANNET_TRY(read_text(item, "added_tokens.content", content));
      has_content = content.has_value();
      if (content) out.content = std::move(*content);
    } else if (key == "single_word") {
      GANNET_TRY(read_flag(item, "added_tokens.single_word", out.single_word));
    } else if (key == "lstrip") {
      GANNET_TRY(read_flag(item, "added_tokens.lstrip", out.lstrip));
    } else if (key == "rstrip") {
      GANNET_TRY(read_flag(item, "added_tokens.rstrip", out.rstrip));
    } else if (key == "normalized") {
      GANNET_TRY(read_flag(item, "added_tokens.normalized", out.normalized));
    } else if (key == "special") {
      GANNET_TRY(read_flag(item, "added_tokens.special", out.special));
    }
  }
  if (!has_id || !has_content) return bad("added_tokens: an entry has no id or no content");
  return ok();
}

Status read_added_tokens(od::value value, TokenizerJson& out) {
  if (is_null(value)) return ok();
  od::array array;
  if (const auto code = value.get_array().get(array)) return bad("added_tokens", code);
  for (auto element : array) {
    od::value item;
    if (const auto code = element.get(item)) return bad("added_tokens", code);
    GANNET_TRY(read_added_token(item, out.added_tokens.emplace_back()));
  }
  return ok();
}

Status read_vocab(od::value value, Storage& storage, TokenizerJson& out) {
  od::object object;
  if (const auto code = value.get_object().get(object)) return bad("model.vocab", code);
  for (auto field : object) {
    std::string_view token;
    if (const auto code = field.unescaped_key().get(token)) return bad("model.vocab", code);
    token = storage.keep(token);
    od::value item;
    if (const auto code = field.value().get(item)) return bad("model.vocab", code);
    int64_t id = 0;
    if (const auto code = item.get_int64().get(id)) return bad(fmt::format("model.vocab '{}'", token), code);
    if (id < 0 || id > kMaxTokenId)
      return bad(fmt::format("model.vocab: '{}' has id {}, outside 0..{}", token, id, kMaxTokenId));
    out.vocab.push_back({token, static_cast<int32_t>(id)});
  }
  return ok();
}

// Either "left right" or ["left", "right"].
Status read_merge(od::value value, Storage& storage, TokenizerJson& out) {
  const size_t rank = out.merges.size();
  od::json_type type{};
  if (const auto code = value.type().get(type)) return bad("model.merges", code);
  if (type == od::json_type::string) {
    std::string_view text;
    if (const auto code = value.get_string().get(text)) return bad("model.merges", code);
    text = storage.keep(text);
    const size_t blank = text.find(' ');
    if (blank == std::string_view::npos || text.find(' ', blank + 1) != std::string_view::npos)
      return bad(fmt::format("model.merges: entry {} '{}' is not two tokens with one blank between", rank, text));
    out.merges.push_back({text.substr(0, blank), text.substr(blank + 1)});
    return ok();
  }
  od::array pair;
  if (const auto code = value.get_array().get(pair)) return bad("model.merges", code);
  std::string_view sides[2];
  int n = 0;
  for (auto element : pair) {
    std::string_view side;
    if (const auto code = element.get_string().get(side)) return bad("model.merges", code);
    if (n < 2) sides[n] = storage.keep(side);
    ++n;
  }
  if (n != 2) return bad(fmt::format("model.merges: entry {} has {} members, not 2", rank, n));
  out.merges.push_back({sides[0], sides[1]});
  return ok();
}

Status read_merges(od::value value, Storage& storage, TokenizerJson& out) {
  od::array array;
  if (const auto code = value.get_array().get(array)) return bad("model.merges", code);
  for (auto element : array) {
    od::value item;
    if (const auto code = element.get(item)) return bad("model.merges", code);
    GANNET_TRY(read_merge(item, storage, out));
  }
  return ok();
}

Status refuse_text(od::value value, std::string_view where) {
  std::optional<std::string> text;
  GANNET_TRY(read_text(value, where, text));
  if (text && !text->empty())
    return Error{Errc::unsupported, fmt::format("tokenizer.json: {} = '{}' is not implemented", where, *text)};
  return ok();
}

Status refuse_dropout(od::value value) {
  if (is_null(value)) return ok();
  double dropout = 0;
  if (const auto code = value.get_double().get(dropout)) return bad("model.dropout", code);
  if (dropout != 0)
    return Error{Errc::unsupported, fmt::format("tokenizer.json: model.dropout = {} makes ids random", dropout)};
  return ok();
}

Status read_model_field(std::string_view key, od::value value, Storage& storage, TokenizerJson& out) {
  if (key == "vocab") return read_vocab(value, storage, out);
  if (key == "merges") return read_merges(value, storage, out);
  if (key == "unk_token") return read_text(value, "model.unk_token", out.unk_token);
  if (key == "fuse_unk") return read_flag(value, "model.fuse_unk", out.fuse_unk);
  if (key == "byte_fallback") return read_flag(value, "model.byte_fallback", out.byte_fallback);
  if (key == "ignore_merges") return read_flag(value, "model.ignore_merges", out.ignore_merges);
  if (key == "continuing_subword_prefix") return refuse_text(value, "model.continuing_subword_prefix");
  if (key == "end_of_word_suffix") return refuse_text(value, "model.end_of_word_suffix");
  if (key == "dropout") return refuse_dropout(value);
  if (key == "type") {
    std::optional<std::string> type;
    GANNET_TRY(read_text(value, "model.type", type));
    if (type && *type != "BPE")
      return Error{Errc::unsupported,
                   fmt::format("tokenizer.json: model.type '{}' is not implemented, only BPE", *type)};
  }
  return ok();
}

Status read_model(od::value value, Storage& storage, TokenizerJson& out) {
  od::object object;
  if (const auto code = value.get_object().get(object)) return bad("model", code);
  bool has_vocab = false, has_merges = false;
  for (auto field : object) {
    std::string_view key;
    if (const auto code = field.unescaped_key().get(key)) return bad("model", code);
    od::value item;
    if (const auto code = field.value().get(item)) return bad("model", code);
    bool* seen = key == "vocab" ? &has_vocab : key == "merges" ? &has_merges : nullptr;
    if (seen != nullptr && std::exchange(*seen, true)) return bad(fmt::format("model.{} stands twice", key));
    GANNET_TRY(read_model_field(key, item, storage, out));
  }
  if (!has_vocab || !has_merges) return bad("model needs 'vocab' and 'merges'");
  return ok();
}

// Appends `component` to `out`, members of a Sequence one by one. Json::parse bounded the depth.
Status flatten(std::string_view where, std::string_view members, Json&& component, std::vector<Json>& out) {
  const Json* type = component.find("type");
  if (type == nullptr || type->as_string() == nullptr)
    return bad(fmt::format("{}: a component has no type", where));
  if (*type->as_string() != "Sequence") {
    out.push_back(std::move(component));
    return ok();
  }
  Json* list = component.find(members);
  if (list == nullptr || !list->is_array()) return bad(fmt::format("{}: a Sequence has no '{}'", where, members));
  for (Json& member : list->items()) GANNET_TRY(flatten(where, members, std::move(member), out));
  return ok();
}

Status read_components(std::string_view where, std::string_view members, od::value value, std::vector<Json>& out) {
  if (is_null(value)) return ok();
  od::object object;
  if (const auto code = value.get_object().get(object)) return bad(where, code);
  std::string_view raw;
  if (const auto code = object.raw_json().get(raw)) return bad(where, code);
  auto parsed = Json::parse(raw);
  if (!parsed) return bad(fmt::format("{}: {}", where, parsed.error().message));
  return flatten(where, members, std::move(*parsed), out);
}

Status read_field(std::string_view key, od::value value, Storage& storage, TokenizerJson& out) {
  if (key == "added_tokens") return read_added_tokens(value, out);
  if (key == "normalizer") return read_components("normalizer", "normalizers", value, out.normalizers);
  if (key == "pre_tokenizer") return read_components("pre_tokenizer", "pretokenizers", value, out.pre_tokenizers);
  if (key == "post_processor") return read_components("post_processor", "processors", value, out.post_processors);
  if (key == "decoder") return read_components("decoder", "decoders", value, out.decoders);
  if (key == "model") return read_model(value, storage, out);
  return ok();
}

}  // namespace

Result<TokenizerJson> parse_tokenizer_json(std::string_view text) {
  const simdjson::padded_string padded(text);
  od::parser parser;
  od::document document;
  if (const auto code = parser.iterate(padded).get(document)) return bad("the file", code);
  od::object root;
  if (const auto code = document.get_object().get(root)) return bad("the file", code);
  Storage storage(text.size());
  TokenizerJson out;
  std::vector<std::string> seen;
  for (auto field : root) {
    std::string_view view;
    if (const auto code = field.unescaped_key().get(view)) return bad("the file", code);
    std::string key(view);
    od::value value;
    if (const auto code = field.value().get(value)) return bad(key, code);
    for (const std::string& other : seen)
      if (other == key) return bad(fmt::format("'{}' stands twice", key));
    GANNET_TRY(read_field(key, value, storage, out));
    if (seen.size() == 64) return bad("more than 64 fields at the top");
    seen.push_back(std::move(key));
  }
  if (!document.current_location().error()) return bad("text goes on after the object");
  bool has_model = false;
  for (const std::string& key : seen) has_model = has_model || key == "model";
  if (!has_model) return bad("no 'model'");
  out.storage = storage.release();
  return out;
}

}  // namespace gannet::files
