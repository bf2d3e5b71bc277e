// Tokens of a chat template. Internal to text/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gannet {

struct TemplateToken {
  enum class Kind : uint8_t {
    data,  // text between tags, white space already trimmed
    open_block,
    close_block,
    open_output,
    close_output,
    name,
    integer,
    real,
    text,  // text: value is unescaped
    op,    // value: the operator
    end,
  };
  Kind kind;
  std::string value;
  int32_t line;
};

// The last token is `end`. White space rules as with trim_blocks and lstrip_blocks.
Result<std::vector<TemplateToken>> tokenize_template(std::string_view source);

}  // namespace gannet
