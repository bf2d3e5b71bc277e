// Byte-pair encoding of one piece of text: ranked merges (tokenizer.json, GGUF gpt2) or scored joins (GGUF llama).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace gannet {

struct BpeOptions {
  bool fuse_unk = false;       // neighbouring unknown characters give one unknown token
  bool byte_fallback = false;  // an unknown character is spelled by <0xHH> tokens where all its bytes have one
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges would give
  int32_t unk_id = -1;         // -1: unknown characters vanish
};

// Merges by rank. The lowest rank goes first, the leftmost of equals. Any thread once loaded.
//
// Every merge of two tokens into an `is_control` token is left out, and such a token is never taken whole: text can
// not produce one.
class RankedBpe {
 public:
  // Keeps a pointer to the vocabulary, which must outlive this object at its place.
  RankedBpe(const Vocabulary* vocabulary, BpeOptions options);
  // The next merge in rank order. Refuses sides or results that are no token.
  Status add_merge(std::string_view left, std::string_view right);
  void reserve(size_t n_merges);

  // Appends the ids of one piece. O(n log n) in the bytes of the piece.
  void encode(std::string_view piece, std::vector<int32_t>& out) const;

 private:
  struct Merge {
    int32_t left = -1, right = -1, rank = 0, result = 0;
  };
  const Merge* find(int32_t left, int32_t right) const;
  bool insert(const Merge& merge);
  std::optional<size_t> join(std::string_view left, std::string_view right);
  void symbols(std::string_view piece, std::vector<int32_t>& out) const;
  void fallback(std::string_view character, std::vector<int32_t>& out, int& pending_unk) const;
  void merge_short(std::vector<int32_t>& ids, size_t first) const;
  void merge_long(std::vector<int32_t>& ids, size_t first) const;
  void encode_by_merges(std::string_view piece, std::vector<int32_t>& out) const;

  const Vocabulary* vocabulary_;
  BpeOptions options_;
  int32_t byte_symbol_[256];   // byte-level: token of each byte; byte_fallback: its <0xHH> token; or -1
  std::vector<Merge> merges_;  // open addressing, a power of two
  size_t n_merges_ = 0;
  int32_t next_rank_ = 0;
  std::string joined_;  // of the merge that is being added
  // By id: whether the token's own text encodes to it. Found out on first use; a race finds the same answer twice.
  enum : uint8_t { kUnknown, kWhole, kSplits };
  mutable std::unique_ptr<std::atomic<uint8_t>[]> whole_;
};

// SentencePiece BPE: neighbouring symbols join while their joined text is a token, highest score first, the
// leftmost of equals. Characters that are no token become <0xHH> tokens, or the unknown token. Any thread once
// loaded.
class ScoredBpe {
 public:
  ScoredBpe(const Vocabulary* vocabulary, std::vector<float> scores, int32_t unk_id);
  // Appends the ids of one piece. O(n log n) in its bytes.
  void encode(std::string_view piece, std::vector<int32_t>& out) const;

 private:
  int32_t find(std::string_view text) const;
  void append_unknown(std::string_view character, std::vector<int32_t>& out) const;
  const Vocabulary* vocabulary_;
  std::vector<float> scores_;  // by id
  int32_t unk_id_;
  int32_t byte_token_[256];
};

}  // namespace gannet
