// The tokens of a vocabulary: id -> bytes and properties, bytes -> id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gannet {

// Where one token's bytes lie in the vocabulary's arena, and what it is.
struct Token {
  enum Flag : uint16_t {
    kPresent = 1 << 0,
    kMapped = 1 << 1,   // the stored bytes are those that its spelling in the GPT-2 alphabet stands for
    kModel = 1 << 2,    // in the model's own vocabulary: BPE may produce it
    kAdded = 1 << 3,    // an added token
    kSpecial = 1 << 4,  // dropped by skip_special
    kControl = 1 << 5,  // Tokenizer::is_control
    kByte = 1 << 6,     // <0xHH>: stands for one byte
  };
  uint32_t begin = 0;
  uint32_t size = 0;
  uint16_t flags = 0;
  bool has(unsigned any_of) const { return (flags & any_of) != 0; }
};

// Hash table from byte strings to ids, open addressing. Keys lie in an arena that the caller passes to each call.
class StringTable {
 public:
  void reserve(size_t n);
  // The id stored for `key`, or -1.
  int32_t find(std::string_view key, const std::string& arena) const;
  // Stores key (lying at `begin` in the arena) -> id, replacing an older id. False when so many keys share their
  // hash that a file must have been made for it.
  bool insert(uint32_t begin, uint32_t size, int32_t id, const std::string& arena);

 private:
  struct Slot {
    uint32_t begin = 0, size = 0, hash = 0;
    int32_t id = -1;
  };
  void grow(size_t n_slots);
  std::vector<Slot> slots_;  // a power of two
  size_t n_used_ = 0;
};

// Filled once while a tokenizer loads, then read by any thread.
//
// A byte-level vocabulary is kept as bytes ("Ġthe" as " the"): pieces of text are looked up as they are. Tokens
// with characters outside the alphabet, which no text can produce, are kept as spelled, in a table of their own.
class Vocabulary {
 public:
  explicit Vocabulary(bool byte_level) : byte_level_(byte_level) {}

  void reserve(size_t n_tokens, size_t n_bytes);
  // Adds a token of the model. A spelling or an id that comes twice keeps what came last. Refuses hashes that
  // collide on purpose.
  Status add(std::string_view spelling, int32_t id);
  // Marks or creates an added token, which is known by its content as it stands in text, never byte-mapped.
  Status add_added(std::string_view content, int32_t id, bool special);
  void set(int32_t id, Token::Flag flag) { tokens_[static_cast<size_t>(id)].flags |= flag; }

  bool byte_level() const { return byte_level_; }
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }  // one more than the largest id
  const Token& at(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  bool has(int32_t id) const { return id >= 0 && id < size() && at(id).has(Token::kPresent); }
  std::string_view bytes(int32_t id) const { return {arena_.data() + at(id).begin, at(id).size}; }
  // As the file spells it.
  std::string spelling(int32_t id) const;

  // Token of the model with these bytes (byte-level: raw bytes; else as spelled), or -1.
  int32_t find_model(std::string_view bytes) const;
  // Any token by its spelling in the file, or -1; added tokens first.
  int32_t find_spelling(std::string_view spelling) const;

 private:
  Status put(std::string_view bytes, int32_t id, unsigned flags, StringTable& table);

  bool byte_level_;
  std::string arena_;
  std::vector<Token> tokens_;
  StringTable model_;    // bytes of mapped tokens (byte-level), or all tokens of the model
  StringTable spelled_;  // byte-level: tokens of the model outside the alphabet
  StringTable added_;    // added tokens by content
  std::string scratch_;
};

}  // namespace gannet
