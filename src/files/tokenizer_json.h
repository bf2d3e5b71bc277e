// Reader of the tokenizer.json format: its vocabulary, merges and added tokens as tables, its components as JSON.
// What a component does, and which ones are implemented, is decided in text/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace gannet::files {

// One parsed file. The views point into storage that this object owns; moving it keeps them valid.
struct TokenizerJson {
  struct AddedToken {
    int32_t id = 0;
    std::string content;
    bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
  };
  struct Entry {
    std::string_view token;
    int32_t id;
  };
  struct Merge {
    std::string_view left, right;
  };

  std::vector<AddedToken> added_tokens;
  // Each is an object with a string "type"; a "Sequence" is replaced by its members, null is an empty list.
  std::vector<Json> normalizers, pre_tokenizers, post_processors, decoders;

  // "model", whose type is BPE.
  std::vector<Entry> vocab;   // in file order; ids in 0 .. kMaxTokenId
  std::vector<Merge> merges;  // rank = index
  std::optional<std::string> unk_token;
  bool fuse_unk = false, byte_fallback = false, ignore_merges = false;

  std::unique_ptr<char[]> storage;
};

// Ids above this are refused: tables are indexed by id.
inline constexpr int32_t kMaxTokenId = (1 << 22) - 1;

// Parses one tokenizer.json. Refuses, naming the field: broken JSON or UTF-8, a missing or mistyped field, ids
// outside 0 .. kMaxTokenId, a model type other than BPE, and BPE options that would change ids and are not
// implemented (dropout, continuing_subword_prefix, end_of_word_suffix). Memory is a small multiple of the text.
Result<TokenizerJson> parse_tokenizer_json(std::string_view text);

}  // namespace gannet::files
