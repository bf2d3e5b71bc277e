// Text to token ids and back, for every tokenizer family Gannet serves: byte-level BPE and SentencePiece-style BPE,
// read from a tokenizer.json or from the metadata of a GGUF file.
//
// Text is bytes. UTF-8 is expected; what is not UTF-8 is kept: an ill-formed byte is a character of no class for
// the pre-tokenizer and goes into the model as the byte it is, so a byte-level vocabulary spells any input and
// gives it back. Borders that must refuse ill-formed text (HTTP, terminal) check with first_invalid_utf8() of
// base/utf8.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/span.h"

namespace gannet {

struct EncodeOptions {
  // Adds what the tokenizer's post-processor adds around a text (usually BOS before it). Chat prompts spell BOS out
  // themselves and leave this off; plain completions turn it on.
  bool add_special = false;
  // The whole text is template_owned: the spelling of a control token in it becomes the token. Off for anything a
  // client wrote. encode_spans() ignores this; there each span says its owner.
  bool parse_special = false;
};

// What a GGUF file says about its tokenizer (`tokenizer.ggml.*`). The views borrow and need to live only during
// from_gguf().
struct GgufVocab {
  std::string_view model;                // tokenizer.ggml.model: "gpt2" or "llama"
  std::string_view pre;                  // tokenizer.ggml.pre; empty when absent
  std::vector<std::string_view> tokens;  // id -> token; byte-mapped form for gpt2
  std::vector<float> scores;             // by id; needed for "llama"
  std::vector<int32_t> token_types;      // by id: 1 normal 2 unknown 3 control 4 user-defined 5 unused 6 byte
  std::vector<std::string_view> merges;  // "left right", by rank; needed for "gpt2"
  std::optional<int64_t> bos_id, eos_id, eot_id, eom_id, unk_id, pad_id;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

// Immutable after loading: any number of threads may use one Tokenizer. Movable, not copyable.
class Tokenizer {
 public:
  // From the text of a tokenizer.json and, where there is one, of the tokenizer_config.json beside it (names of BOS
  // and EOS, add_bos_token, add_eos_token). Refuses, naming the field and its value: a broken file, a model type
  // other than BPE, and every component type or regular expression that is not implemented (leaving one out would
  // give ids that look right and are not).
  static Result<Tokenizer> from_json(std::string_view tokenizer_json, std::string_view tokenizer_config = {});

  // From GGUF metadata. Refuses an unknown `pre` name, and arrays whose lengths disagree.
  static Result<Tokenizer> from_gguf(const GgufVocab& vocab);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Ids of one text. Cannot fail: time is O(n log n) for any input. Memory is about 40 bytes a byte of the longest
  // piece while it runs.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  // Ids of a rendered prompt. The spans are tokenized as one text (merges reach across their borders), but the
  // spelling of an added token becomes that token only where every byte of it is template_owned. Added tokens that
  // are white space only (runs of blanks in some vocabularies) structure nothing and count for any owner.
  std::vector<int32_t> encode_spans(std::span<const TextSpan> spans, bool add_special = false) const;

  // The whole text of `ids`: the joined pieces of a Detokenizer that sees them all (detokenizer.h). Unknown ids add
  // nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  // One more than the largest id that has a token. The model's logits may be wider; ids above, and holes, have no
  // token and must not be sampled.
  int32_t n_vocab() const;
  bool has_token(int32_t id) const;

  // Raw bytes the token adds to a text: "Ġthe" is " the", "<0x0A>" is "\n", "▁the" is " the", a control token its
  // own spelling. May be part of a character. Empty for an id without token. Lives as long as the Tokenizer.
  std::string_view token_bytes(int32_t id) const;
  // The token as the vocabulary file spells it ("Ġthe"). Empty for an id without token.
  std::string token_text(int32_t id) const;
  // Id of a token by that spelling, added tokens included.
  std::optional<int32_t> token_id(std::string_view token_text) const;

  // An added token (tokenizer.json: added_tokens; GGUF: types control and user-defined) that is not white space
  // only: the ids which a client's text can never produce.
  bool is_control(int32_t id) const;
  // An added token flagged special: decode() with skip_special leaves it out.
  bool is_special(int32_t id) const;

  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> pad_id() const;
  // Ids that end a text: EOS (tokenizer_config; GGUF eos, eot, eom) and the well-known end-of-turn tokens
  // (<|im_end|>, <|eot_id|>, <|eom_id|>, <end_of_turn>, <|endoftext|>, <|end_of_text|>) where the vocabulary flags
  // them special. Sorted. A generation_config.json may add to it.
  const std::vector<int32_t>& eos_ids() const;
  // What add_special puts before and after a text.
  const std::vector<int32_t>& prefix_ids() const;
  const std::vector<int32_t>& suffix_ids() const;

  // Token ids are bytes through the GPT-2 alphabet (DeepSeek, Llama 3, Qwen, SmolLM): needed by the Engram map.
  bool is_byte_level() const;

  struct Impl;
  const Impl& impl() const { return *impl_; }  // for the text/ folder

 private:
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace gannet
