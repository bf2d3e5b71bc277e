// Any bytes as text: encoding never fails, a byte-level vocabulary gives every byte back, the streamed text is the
// whole text and well-formed, and no control token comes out of what a client wrote, wherever it stands in a
// prompt.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/tokenizer_file.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"

#ifndef GANNET_SOURCE_DIR
#error "GANNET_SOURCE_DIR names the repository"
#endif

namespace {

using namespace gannet;

const Tokenizer& load(const char* name) {
  auto tokenizer = load_tokenizer(std::string(GANNET_SOURCE_DIR) + "/tests/golden/tokenizer/" + name);
  GANNET_CHECK(tokenizer.has_value());
  return *new Tokenizer(std::move(*tokenizer));  // lives as long as the fuzzer
}

struct Case {
  const Tokenizer& tokenizer;
  bool keeps_bytes;  // no normalizer changes the text
};

int64_t n_control(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  int64_t n = 0;
  for (const int32_t id : ids) n += tokenizer.is_control(id) && id != tokenizer.impl().unk ? 1 : 0;
  return n;
}

void check(const Case& c, std::string_view text) {
  const auto ids = c.tokenizer.encode(text);
  GANNET_CHECK(n_control(c.tokenizer, ids) == 0);
  std::string bytes, streamed;
  Detokenizer detokenizer(c.tokenizer);
  for (const int32_t id : ids) {
    bytes += c.tokenizer.token_bytes(id);
    const std::string piece = detokenizer.push(id);
    GANNET_CHECK(!first_invalid_utf8(piece));
    streamed += piece;
  }
  streamed += detokenizer.flush();
  GANNET_CHECK(streamed == c.tokenizer.decode(ids));
  if (c.keeps_bytes) GANNET_CHECK(bytes == text);
  if (c.keeps_bytes && !first_invalid_utf8(text)) GANNET_CHECK(streamed == text);
  // Between two halves of the template's text, whose tokens are the template's own.
  const size_t half = text.size() / 2;
  using Owner = TextSpan::Owner;
  const std::vector<TextSpan> spans = {{std::string(text.substr(0, half)), Owner::client_owned},
                                       {"<think>", Owner::template_owned},
                                       {std::string(text.substr(half)), Owner::client_owned}};
  GANNET_CHECK(n_control(c.tokenizer, c.tokenizer.encode_spans(spans)) == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Case kCases[] = {{load("tiny"), true},
                                {load("families/smollm.json"), true},
                                {load("families/llama-bpe.json"), true},
                                {load("families/qwen2.json"), false},
                                {load("families/gemma.json"), false}};
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  check(kCases[data[0] % std::size(kCases)], text);
  return 0;
}
