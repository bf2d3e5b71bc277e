#include "text/chat_effort.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace gannet {
namespace {

constexpr std::array<EffortName, 8> kEffortNames{{
    {"none", 0},
    {"minimal", 50},
    {"low", 50},
    {"medium", 75},
    {"high", 75},
    {"xhigh", 75},
    {"max", 100},
    {"ultra", 100},
}};

Error refused(const Json& value, std::string_view field) {
  std::string names;
  for (const EffortName& row : kEffortNames) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return Error{Errc::bad_request, fmt::format("{}: {} is neither one of {} nor an integer from 1 to 100", field,
                                              value.dump().substr(0, 60), names)};
}

}  // namespace

std::span<const EffortName> effort_names() { return kEffortNames; }

Status apply_effort(Thinking& thinking, const Json& value, std::string_view field) {
  int64_t number = -1;
  if (const std::string* text = value.as_string()) {
    for (const EffortName& row : kEffortNames)
      if (row.name == *text) number = row.effort;
    const bool named = number >= 0;
    if (!named) {
      const auto parsed = std::from_chars(text->data(), text->data() + text->size(), number);
      if (parsed.ec != std::errc{} || parsed.ptr != text->data() + text->size() || number < 1)
        return refused(value, field);
    }
    thinking.effort_stated = *text;
  } else {
    // 75.0 and true are not integers here: the release refuses them too
    const bool whole = value.is_number() && value.number_text().find_first_of(".eE") == std::string_view::npos;
    const auto integer = whole ? value.as_int() : std::nullopt;
    if (!integer || *integer < 1) return refused(value, field);
    number = *integer;
    thinking.effort_stated = std::string(value.number_text());
  }
  if (number > 100) return refused(value, field);
  if (number == 0) {
    if (!thinking.on_stated) thinking.on = false;
    return ok();
  }
  thinking.effort = static_cast<int32_t>(number);
  return ok();
}

}  // namespace gannet
