// Output parser for models that write a tool call as one JSON object. Internal to text/.
#pragma once

#include <string>
#include <vector>

#include "text/output_parser.h"
#include "text/output_parser_events.h"
#include "text/output_parser_tags.h"

namespace gannet {

// A call is kept back until it is whole, because only then is it known to be one: its events come together. What
// turns out to be no call becomes content again. A call that was cut by the token limit is left out.
class JsonOutputParser final : public OutputParser {
 public:
  enum class Style : uint8_t {
    tagged,  // <tool_call> ... </tool_call>
    bare,    // the answer begins with {, or <|python_tag|>{; further objects follow after blanks or ';'
  };
  JsonOutputParser(Style style, OutputParserOptions options);
  void push(std::string_view bytes, int64_t token_index, std::vector<OutputEvent>& events) override;
  OutputEnd finish(bool length, std::vector<OutputEvent>& events) override;
  int64_t n_dropped_bytes() const override { return n_dropped_; }

 private:
  enum class State : uint8_t { reasoning, content, call };

  void byte(char c);
  void released(char c);
  void tag(int32_t index);
  void text_byte(char c);
  void flush_blanks();
  void enter(State state);
  void begin_call(std::string_view opening);
  void object_byte(char c);
  bool may_be_call() const;
  void end_call(bool whole);
  bool emit_call(std::string_view body);
  bool emit_json_call(std::string_view body);
  bool emit_function_call(std::string_view body);
  Json typed_value(std::string_view function, std::string_view parameter, std::string_view text) const;
  void emit(std::string_view name, const Json& arguments);
  void restore();

  Style style_;
  OutputParserOptions options_;
  OutputEventWriter out_;
  State state_;
  bool leading_ = true;  // no text since the state began: blank lines are dropped
  std::string blanks_;   // white space that vanishes before a tag and at the start
  int32_t node_ = 0;
  std::string held_;
  std::string opening_, body_;  // of the call that is being read
  int32_t n_calls_ = 0;
  int32_t depth_ = 0;  // of the bare object
  bool in_string_ = false, escaped_ = false;
  int64_t n_dropped_ = 0;
};

}  // namespace gannet
