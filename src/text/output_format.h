// Which markup a model's answers use for tool calls and reasoning: a fact of the checkpoint, or the user's flag.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "text/chat_encoder.h"
#include "text/output_parser.h"

namespace gannet {

enum class OutputFormat : uint8_t {
  plain,          // `<think>` only; calls are text
  deepseek_dsml,  // DeepSeek-V3.2, V4, V4.1: DSML
  hermes,         // Qwen, Hermes: <tool_call>{"name", "arguments"}</tool_call>, and Qwen3-Coder's <function=...>
  llama3_json,    // Llama 3: the answer is {"name", "parameters"}, perhaps after <|python_tag|>
};

// `choice` is "auto" or a name: deepseek_v41 (also deepseek_v4, deepseek_v32), hermes (also qwen), llama3_json,
// none. With "auto" the chat encoder and the checkpoint's template decide. bad_request for another name.
Result<OutputFormat> output_format(const ChatModelInfo& model, std::string_view encoder,
                                   std::string_view choice = "auto");

std::unique_ptr<OutputParser> make_output_parser(OutputFormat format, OutputParserOptions options);

// Spellings that a format's parser looks for. A token that is one of them goes to the parser even where special
// tokens are not shown.
bool is_output_markup(std::string_view token_bytes);

}  // namespace gannet
