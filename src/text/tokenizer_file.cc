#include "text/tokenizer_file.h"

#include <fmt/format.h>

#include "base/mapped_file.h"

namespace gannet {
namespace {

Error in_file(const Error& error, std::string_view file) {
  return {error.code, fmt::format("{}: {}", file, error.message)};
}

// Integers of 32 bits by id; empty when the key is absent.
Result<std::vector<int32_t>> int_array(const files::Gguf& gguf, std::string_view key) {
  std::vector<int32_t> out;
  const files::GgufValue* value = gguf.value(key);
  if (value == nullptr) return out;
  const auto ints = value->as_ints();
  if (!ints) return Error{Errc::bad_file, fmt::format("{}: {} is no array of integers", gguf.name(), key)};
  for (const int64_t i : *ints) out.push_back(static_cast<int32_t>(i));
  return out;
}

Result<std::vector<std::string_view>> string_array(const files::Gguf& gguf, std::string_view key) {
  const files::GgufValue* value = gguf.value(key);
  if (value == nullptr) return std::vector<std::string_view>();
  auto strings = value->as_strings();
  if (!strings) return Error{Errc::bad_file, fmt::format("{}: {} is no array of strings", gguf.name(), key)};
  return *std::move(strings);
}

std::optional<int64_t> int_of(const files::Gguf& gguf, std::string_view key) {
  const files::GgufValue* value = gguf.value(key);
  return value == nullptr ? std::nullopt : value->as_int();
}

std::optional<bool> bool_of(const files::Gguf& gguf, std::string_view key) {
  const files::GgufValue* value = gguf.value(key);
  return value == nullptr ? std::nullopt : value->as_bool();
}

std::string_view string_of(const files::Gguf& gguf, std::string_view key) {
  const files::GgufValue* value = gguf.value(key);
  return value == nullptr ? std::string_view() : value->as_string().value_or(std::string_view());
}

}  // namespace

Result<Tokenizer> tokenizer_from_gguf(const files::Gguf& gguf) {
  if (const std::string_view json = string_of(gguf, "tokenizer.huggingface.json"); !json.empty()) {
    auto tokenizer = Tokenizer::from_json(json);
    if (!tokenizer) return in_file(tokenizer.error(), gguf.name());
    return tokenizer;
  }
  GgufVocab vocab;
  GANNET_ASSIGN(vocab.model, gguf.get_string("tokenizer.ggml.model"));
  vocab.pre = string_of(gguf, "tokenizer.ggml.pre");
  GANNET_ASSIGN(vocab.tokens, string_array(gguf, "tokenizer.ggml.tokens"));
  GANNET_ASSIGN(vocab.merges, string_array(gguf, "tokenizer.ggml.merges"));
  GANNET_ASSIGN(vocab.token_types, int_array(gguf, "tokenizer.ggml.token_type"));
  if (const files::GgufValue* scores = gguf.value("tokenizer.ggml.scores")) {
    auto floats = scores->as_floats();
    if (!floats) return Error{Errc::bad_file, gguf.name() + ": tokenizer.ggml.scores is no array of numbers"};
    vocab.scores = *std::move(floats);
  }
  vocab.bos_id = int_of(gguf, "tokenizer.ggml.bos_token_id");
  vocab.eos_id = int_of(gguf, "tokenizer.ggml.eos_token_id");
  vocab.eot_id = int_of(gguf, "tokenizer.ggml.eot_token_id");
  vocab.eom_id = int_of(gguf, "tokenizer.ggml.eom_token_id");
  vocab.unk_id = int_of(gguf, "tokenizer.ggml.unknown_token_id");
  vocab.pad_id = int_of(gguf, "tokenizer.ggml.padding_token_id");
  vocab.add_bos = bool_of(gguf, "tokenizer.ggml.add_bos_token");
  vocab.add_eos = bool_of(gguf, "tokenizer.ggml.add_eos_token");
  vocab.add_space_prefix = bool_of(gguf, "tokenizer.ggml.add_space_prefix");
  auto tokenizer = Tokenizer::from_gguf(vocab);
  if (!tokenizer) return in_file(tokenizer.error(), gguf.name());
  return tokenizer;
}

Result<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  if (path.extension() == ".gguf") {
    GANNET_ASSIGN(const files::Gguf gguf, files::Gguf::open(path));
    return tokenizer_from_gguf(gguf);
  }
  std::error_code failed;
  const bool is_folder = std::filesystem::is_directory(path, failed);
  const std::filesystem::path file = is_folder ? path / "tokenizer.json" : path;
  GANNET_ASSIGN(const MappedFile json, MappedFile::open(file));
  const std::string_view text(reinterpret_cast<const char*>(json.bytes().data()), json.bytes().size());
  std::string config;
  const std::filesystem::path config_file = file.parent_path() / "tokenizer_config.json";
  if (std::filesystem::exists(config_file, failed)) {
    GANNET_ASSIGN(config, read_file(config_file));
  }
  auto tokenizer = Tokenizer::from_json(text, config);
  if (!tokenizer) return in_file(tokenizer.error(), file.string());
  return tokenizer;
}

}  // namespace gannet
