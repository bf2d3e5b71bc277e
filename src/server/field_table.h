// Every request field of the OpenAI-shaped routes that has a class of its own beside "honoured": accepted without
// effect, or refused by name. docs/api.md lists all three classes; a test compares.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "server/api_error.h"

namespace gannet::server {

// Fields that change nothing here and whose absence would not be missed. Listed, so that nothing is dropped unseen.
std::span<const std::string_view> fields_without_effect();

struct RefusedField {
  std::string_view name;
  std::string_view why;  // completes "NAME: ..."
};
std::span<const RefusedField> refused_fields();

// A refused field that asks for something: not null, false, empty list, empty object or empty string.
std::optional<ApiError> refuse_fields(const Json& body);

// The one place where constrained output enters (response_format, tool_choice required or named, guided_*,
// structured_outputs, text.format, output_config.format): nothing, or the 400 that names the field. Until the
// grammar engine is joined here, everything but plain text is refused.
std::optional<ApiError> refuse_constraints(const Json& body);

}  // namespace gannet::server
