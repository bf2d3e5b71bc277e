// How tokens become text: what a tokenizer.json calls its decoder, reduced to a rewrite of each token alone and a
// rule for the beginning of a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace gannet {

struct DecodeRules {
  bool byte_level = false;  // tokens are bytes in the GPT-2 alphabet; nothing else below applies
  std::vector<std::pair<std::string, std::string>> replace;  // in order, in each token
  bool byte_tokens = false;                                  // <0xHH> is that byte
  // The beginning of a text: cut up to `strip_count` of `strip`, or drop every `mark` of the first token.
  std::string strip, mark;
  int64_t strip_count = 0;

  // From the components of a tokenizer.json, Sequences flattened. Refuses types and orders that are not
  // implemented.
  static Result<DecodeRules> from_components(const std::vector<Json>& components);

  // The bytes that a token adds in the middle of a text.
  std::string apply(std::string_view token) const;
};

// The byte of "<0xHH>", or -1.
int byte_of_token(std::string_view token);

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content);

}  // namespace gannet
