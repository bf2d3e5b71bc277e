// What a Tokenizer is made of. For the files of text/ that build and use one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace gannet {

struct Tokenizer::Impl {
  explicit Impl(bool byte_level) : vocabulary(byte_level) {}
  Impl(const Impl&) = delete;  // the models point at the vocabulary
  Impl& operator=(const Impl&) = delete;

  Vocabulary vocabulary;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  AddedTokens raw_added;              // searched in the text as it is
  AddedTokens normalized_added;       // searched in the normalized text between those
  std::unique_ptr<RankedBpe> ranked;  // one of these two
  std::unique_ptr<ScoredBpe> scored;
  DecodeRules decode;

  // Bytes of each token where they are not the vocabulary's own (not byte-level).
  std::string decoded_arena;
  std::vector<std::pair<uint32_t, uint32_t>> decoded;  // by id: begin, size

  std::optional<int32_t> bos, pad;
  int32_t unk = -1;  // what unknown characters give: the one control token that text may produce
  std::vector<int32_t> eos, prefix, suffix;

  std::string_view bytes(int32_t id) const;
  void encode(std::string_view text, std::string_view client, bool add_special, std::vector<int32_t>& out) const;

  // Steps of loading, in this order: the vocabulary is filled, then added tokens, then the model.
  struct Added {
    AddedTokens::Entry entry;
    bool normalized = false, special = false, verbatim = false;  // verbatim: decodes to its content as it is
  };
  Status set_added(std::vector<Added> added);
  // Fills decoded from the decode rules; `verbatim` by id may be empty.
  void set_decoded(const std::vector<char>& verbatim);
  // The end-of-text tokens that are known by name.
  void add_known_eos();
  void finish();

 private:
  void put_decoded(int32_t id, std::string_view text);
  void encode_gap(std::string_view text, std::string_view client, bool at_start, std::vector<int32_t>& out) const;
  void encode_pieces(std::string_view text, bool at_start, std::vector<int32_t>& out) const;
};

}  // namespace gannet
