// Token ids to text, piece by piece, never half a character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace gannet {

struct DetokenizeOptions {
  bool skip_special = true;  // leave out tokens flagged special
  // The ids begin a text. Off when they continue one (the completion of a prompt): then a tokenizer that strips the
  // blank of the first word (Llama 2) keeps it.
  bool text_start = true;
};

// Decoder of one sequence. Borrows the tokenizer. One thread at a time.
//
// Every returned string is well-formed UTF-8. Bytes that may still become a character (at most 3) are held back;
// bytes that cannot are replaced by U+FFFD at once: one for each maximal subpart (Unicode 15.0, 3.9, D93b), or one
// for each byte in vocabularies with <0xHH> tokens, as their own decoders do.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, DetokenizeOptions options = {});

  // Text that `id` completes; empty when it completes none. An id without token adds nothing.
  std::string push(int32_t id);
  // The same for bytes that are no token (text a parser rewrote).
  std::string push_bytes(std::string_view bytes);
  // Ends the text: bytes still held become U+FFFD. The object then starts a new text.
  std::string flush();

  // Bytes held back now: a stop-string or tool parser may need to know that more is coming.
  std::string_view pending() const { return pending_; }

 private:
  void start();
  void append(std::string& out, std::string_view bytes);

  const Tokenizer* tokenizer_;
  DetokenizeOptions options_;
  bool first_ = false;      // the next token is the first of a text
  int64_t strip_left_ = 0;  // leading blanks that may still be cut
  std::string pending_;
};

}  // namespace gannet
