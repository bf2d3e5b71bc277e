// Any bytes as a tokenizer.json: an error with a message, or a tokenizer that encodes and decodes any text and
// makes no control token of a client's.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/token_map.h"
#include "text/tokenizer_impl.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = gannet::Tokenizer::from_json(text, size % 3 == 0 ? text : std::string_view());
  if (!tokenizer) {
    GANNET_CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  const auto ids = tokenizer->encode(text.substr(0, 400), {.add_special = true, .parse_special = true});
  for (const int32_t id : ids) GANNET_CHECK(tokenizer->has_token(id), "id {}", id);
  (void)tokenizer->decode(ids, false);
  for (const int32_t id : tokenizer->encode(text.substr(0, 400)))
    GANNET_CHECK(tokenizer->has_token(id) && (!tokenizer->is_control(id) || id == tokenizer->impl().unk), "id {}",
                 id);
  if (tokenizer->n_vocab() < 1000) (void)gannet::engram_token_map(*tokenizer, tokenizer->n_vocab(), 0);
  return 0;
}
