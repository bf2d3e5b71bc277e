// Prompts of DeepSeek-V4.1: turn markers, effort line, tools and calls in DSML, thinking with its drop rule, tasks,
// images as placeholders, prefix completion. The release has no template file; docs/chat_encoding.md has the rules
// in words, tests/text/chat_deepseek_v41_test.cc as examples.
#pragma once

#include "text/chat_encoder.h"

namespace gannet {

namespace deepseek_v41 {

constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
constexpr std::string_view kSystem = "<｜System｜>";
constexpr std::string_view kUser = "<｜User｜>";
constexpr std::string_view kAssistant = "<｜Assistant｜>";
constexpr std::string_view kReminder = "<｜latest_reminder｜>";
constexpr std::string_view kThink = "<think>";
constexpr std::string_view kEndThink = "</think>";
constexpr std::string_view kDsml = "｜DSML｜";
constexpr std::string_view kImage = "<｜deepseek_image｜>";

}  // namespace deepseek_v41

// Refuses: an empty conversation, a tool name or parameter key in the history that would break out of its markup, a
// tool object without a name, contradicting namespaces.
std::unique_ptr<ChatEncoder> make_deepseek_v41_encoder();

// Prompt for filling in the middle: BOS, fim begin, prefix, fim hole, suffix, fim end.
std::vector<TextSpan> deepseek_fim_prompt(std::string_view prefix, std::string_view suffix);

}  // namespace gannet
