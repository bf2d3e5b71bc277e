// Reading the fields of one component of a tokenizer.json (normalizer, pre-tokenizer, post-processor, decoder).
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace gannet {

// "tokenizer.json: <type>: <message>", code unsupported.
Error component_error(const Json& component, std::string_view message);

// A field of the component, or the value for an absent or null one. Refuses another kind.
Result<bool> component_flag(const Json& component, std::string_view field, bool absent);
Result<int64_t> component_int(const Json& component, std::string_view field, int64_t absent);
Result<std::string> component_text(const Json& component, std::string_view field, std::string_view absent);

// The "pattern" of Split and Replace: {"String": text} or {"Regex": text}, not empty. A regular expression without
// any special character is given as text.
struct ComponentPattern {
  std::string text;
  bool is_regex = false;
};
Result<ComponentPattern> component_pattern(const Json& component);

}  // namespace gannet
