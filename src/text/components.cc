#include "text/components.h"

#include <fmt/format.h>

namespace gannet {

Error component_error(const Json& component, std::string_view message) {
  const Json* type = component.find("type");
  const std::string* name = type == nullptr ? nullptr : type->as_string();
  return {Errc::unsupported, fmt::format("tokenizer.json: {}: {}", name == nullptr ? "?" : *name, message)};
}

namespace {

Error wrong_kind(const Json& component, std::string_view field, std::string_view want) {
  return component_error(component, fmt::format("'{}' is no {}", field, want));
}

const Json* given(const Json& component, std::string_view field) {
  const Json* value = component.find(field);
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace

Result<bool> component_flag(const Json& component, std::string_view field, bool absent) {
  const Json* value = given(component, field);
  if (value == nullptr) return absent;
  if (const auto flag = value->as_bool()) return *flag;
  return wrong_kind(component, field, "boolean");
}

Result<int64_t> component_int(const Json& component, std::string_view field, int64_t absent) {
  const Json* value = given(component, field);
  if (value == nullptr) return absent;
  if (const auto number = value->as_int()) return *number;
  return wrong_kind(component, field, "integer");
}

Result<std::string> component_text(const Json& component, std::string_view field, std::string_view absent) {
  const Json* value = given(component, field);
  if (value == nullptr) return std::string(absent);
  if (const std::string* text = value->as_string()) return *text;
  return wrong_kind(component, field, "string");
}

Result<ComponentPattern> component_pattern(const Json& component) {
  const Json* pattern = given(component, "pattern");
  if (pattern == nullptr) return component_error(component, "no 'pattern'");
  const bool is_regex = pattern->find("Regex") != nullptr;
  const Json* value = is_regex ? pattern->find("Regex") : pattern->find("String");
  const std::string* text = value == nullptr ? nullptr : value->as_string();
  if (text == nullptr || text->empty())
    return component_error(component, "'pattern' is neither a String nor a Regex");
  return ComponentPattern{*text, is_regex && text->find_first_of("\\^$.|?*+()[]{}") != std::string::npos};
}

}  // namespace gannet
