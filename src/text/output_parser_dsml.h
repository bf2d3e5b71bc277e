// The state machine behind make_dsml_output_parser. Internal to text/.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "text/output_parser.h"
#include "text/output_parser_events.h"
#include "text/output_parser_tags.h"

namespace gannet {

class DsmlOutputParser final : public OutputParser {
 public:
  explicit DsmlOutputParser(OutputParserOptions options);
  void push(std::string_view bytes, int64_t token_index, std::vector<OutputEvent>& events) override;
  OutputEnd finish(bool length, std::vector<OutputEvent>& events) override;
  int64_t n_dropped_bytes() const override { return n_dropped_; }

 private:
  enum class State : uint8_t {
    reasoning,
    content,
    calls,           // between the block's opening and `invoke name="`
    name,            // up to the quote
    args,            // between parameters
    body,            // a JSON object in place of parameters
    parameter_name,  // up to the quote
    parameter_type,  // up to ">"
    string_value,    // streamed
    json_value,      // kept until it is whole
    closing,         // after "</｜DSML｜", up to ">"
    done,
  };

  void byte(char c);
  void enter(State state);
  // Bytes that turned out to be no tag, and tags, of the state's automaton.
  void released(char c);
  void tag(int32_t index);
  // ... for each kind of state
  void text_byte(char c);
  void text_tag(int32_t index);
  void flush_newlines();
  void swallow(std::string_view bytes);
  void restore_swallowed();
  void name_byte(char c);
  void args_byte(char c);
  void body_byte(char c);
  void parameter_name_byte(char c);
  void parameter_type_byte(char c);
  void closing_byte(char c);
  void string_bytes(std::string_view bytes);

  void begin_call();
  void begin_value();
  void end_value();
  void end_call();
  void write_arguments(std::string_view json);
  void json_becomes_string();
  const Json* property(std::string_view name) const;  // its schema in the declared tool
  bool is_string_property(std::string_view name) const;
  bool has_required() const;
  const TagAutomaton* automaton() const;

  OutputParserOptions options_;
  OutputEventWriter out_;
  State state_;
  bool leading_ = true;     // no text since the state began: line breaks are dropped
  int64_t n_newlines_ = 0;  // held back: they vanish before a tag
  int32_t node_ = 0;        // of the state's automaton
  std::string held_;        // bytes that may become a tag
  std::string swallowed_;   // since the block opened, until a call begins
  std::string word_;        // name, type, tag or JSON that is being read
  int32_t n_calls_ = 0, n_ended_ = 0;
  const Json* declared_ = nullptr;                 // function object of the call
  std::set<std::string, std::less<>> parameters_;  // of the call
  std::string parameter_;
  bool typed_ = false, drop_value_ = false;
  bool args_started_ = false;  // "{" has been written
  bool body_seen_ = false;
  int32_t body_depth_ = 0;
  bool body_in_string_ = false, body_escaped_ = false;
  std::string wrapper_, wrapper_name_;  // the only parameter so far, if it may stand for all arguments
  int64_t n_dropped_ = 0;
};

}  // namespace gannet
