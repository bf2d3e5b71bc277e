// From the text a model writes to what it means: reasoning, content, tool calls. Byte by byte, in linear time, with
// bounded memory; every byte string has a defined result, truncated and malformed ones too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/chat_encoder.h"

namespace gannet {

struct OutputEvent {
  enum class Kind : uint8_t {
    reasoning,   // text
    content,     // text
    tool_begin,  // name, name_space; opens call `tool_index`, 0, 1, ...
    tool_args,   // text: the next piece of the call's arguments, JSON
    tool_end,    // the arguments are whole
  };
  Kind kind;
  std::string text;
  int32_t tool_index = -1;
  std::string name, name_space;
  // Tokens [first, last) since the event before: the ranges of all events are disjoint and rise. Empty for a
  // further event of the same token.
  int64_t first_token = 0, last_token = 0;

  bool operator==(const OutputEvent&) const = default;
};

enum class OutputEnd : uint8_t { stop, length, tool_calls };

struct OutputParserOptions {
  OutputStart start = OutputStart::content;
  bool continues = false;  // a prefix of the text stands in the prompt: line breaks at the start belong to it
  // The declared tools, as in Conversation. Without any, markup of calls is content.
  std::vector<Json> tools;
};

// One answer. Not thread-safe; used by the thread that streams the answer.
class OutputParser {
 public:
  virtual ~OutputParser() = default;
  // The bytes of token `token_index` (0, 1, ... of the answer); may be part of a character. Appends events; their
  // text is never cut inside a character.
  virtual void push(std::string_view bytes, int64_t token_index, std::vector<OutputEvent>& events) = 0;
  // The answer is over: because the model ended it, or (`length`) because it was cut. Appends what was held back.
  // To be called once.
  virtual OutputEnd finish(bool length, std::vector<OutputEvent>& events) = 0;
  // Bytes that were markup of no consequence, or stood after the calls.
  virtual int64_t n_dropped_bytes() const = 0;
};

// DeepSeek-V4.1: `<think>`, DSML calls; the spellings of V4 and V3.2 are taken too.
std::unique_ptr<OutputParser> make_dsml_output_parser(OutputParserOptions options);

}  // namespace gannet
