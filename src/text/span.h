// Prompt text with its owner: what the template wrote and what a client wrote.
#pragma once

#include <cstdint>
#include <string>

namespace gannet {

// One run of prompt text. Only in template_owned text may the spelling of a control token become that token;
// client_owned text is always spelled out as ordinary pieces. Spans are rendered and tokenized in order; a span
// may be empty. The text is bytes: UTF-8 is expected, and not checked here.
struct TextSpan {
  enum class Owner : uint8_t { template_owned, client_owned };
  std::string text;
  Owner owner = Owner::client_owned;

  bool operator==(const TextSpan&) const = default;
};

}  // namespace gannet
