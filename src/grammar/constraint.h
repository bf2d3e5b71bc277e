// What a request allows the model to write: a language over bytes, compiled for one vocabulary, and the state of
// one answer in it.
//
// Languages are matched by the bytes of tokens, so a token may end in the middle of a character where the language
// goes on. Control tokens (BOS, <think>, role markers, ...) are never allowed: no language names them. Ids that end
// the text are allowed exactly where the language may end.
//
// The automaton is XGrammar's C++ core: a pushdown automaton over bytes, with the tokens of each position sorted at
// compile time into those that are always allowed, never, or that need the stack (XGrammar, arXiv 2411.15100).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gannet::grammar {

// The tokens that languages are matched against. Immutable, cheap to copy, any thread.
class Vocabulary {
 public:
  // size: width of the masks in tokens (the model's logits). bytes(id): what the token adds to the text; empty for
  // ids without token and for control tokens, which are then never allowed. end_ids: the tokens that end a text.
  static Result<Vocabulary> make(int32_t size, const std::function<std::string_view(int32_t)>& bytes,
                                 std::span<const int32_t> end_ids);

  int32_t size() const;
  int32_t mask_words() const { return (size() + 31) / 32; }
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// A compiled language. Immutable, cheap to copy, any thread.
//
// Compiling takes time and memory that a hostile source can make large: text of a client must not come here without
// limits around it.
class CompiledConstraint {
 public:
  // Grammar in EBNF (GBNF): rules `name ::= ...`, of which `root` is the language. Refuses what does not parse with
  // the line that is wrong.
  static Result<CompiledConstraint> from_ebnf(const Vocabulary& vocabulary, const std::string& source);
  // Exactly one of these texts.
  static Result<CompiledConstraint> from_choices(const Vocabulary& vocabulary,
                                                 std::span<const std::string> choices);

  size_t memory_bytes() const;
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// Where one answer stands in its language. One thread at a time; rows of one answer that are verified together take
// the same matcher forward and roll it back.
class Matcher {
 public:
  explicit Matcher(const CompiledConstraint& constraint);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  // Writes the allowed next tokens: bit id % 32 of word id / 32. `words` holds exactly mask_words(). All zero after
  // the end.
  void fill_mask(std::span<uint32_t> words);
  // Goes on with one token; false, and nothing changes, where the language forbids it.
  bool accept(int32_t token);
  // Takes back the last n accepted tokens, ends included.
  void rollback(int32_t n);
  int32_t n_accepted() const { return n_accepted_; }

  bool may_end() const;  // the text so far is a whole sentence of the language
  bool ended() const;    // a token that ends the text was accepted
  // The bytes that every continuation begins with; may be empty.
  std::string forced_text();
  // A matcher of its own at the same place (n > 1).
  Matcher fork() const;

 private:
  struct State;
  explicit Matcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  int32_t n_accepted_ = 0;
};

// A literal of EBNF, in quotes, for any bytes. Bytes that are not UTF-8 cannot be said in it: the text must be
// UTF-8.
std::string ebnf_literal(std::string_view utf8);

}  // namespace gannet::grammar
