// How hard the model is asked to think: the names clients use and the number 1..100 they stand for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/conversation.h"

namespace gannet {

// One row: a name of `reasoning_effort` and its number; 0 turns thinking off.
struct EffortName {
  std::string_view name;
  int32_t effort;
};

// The names of the current V4.1 release (10 Sep 2026 and later): low 50, high 75 (the default), max 100, and the
// names that DeepSeek's own server maps to these. The first upload had low 25, high 50, xhigh 75.
std::span<const EffortName> effort_names();

constexpr int32_t kDefaultEffort = 75;

// Reads an effort as a client states it: one of the names, or an integer 1..100 (a number, or a string of digits).
// Sets effort and effort_stated, and turns thinking off for "none" unless the client also stated thinking on.
// `field` names it in errors. Refuses everything else.
Status apply_effort(Thinking& thinking, const Json& value, std::string_view field);

}  // namespace gannet
