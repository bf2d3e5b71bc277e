#include "text/output_parser_dsml.h"

#include <algorithm>
#include <array>

namespace gannet {
namespace {

constexpr size_t kLongestName = 256;  // of tools and parameters; longer is no name
constexpr size_t kLongestTag = 64;
constexpr size_t kLongestSwallowed = 4096;  // between the block's opening and the first call
constexpr size_t kLongestJson = 1 << 20;

// Indices are those of the lists.
enum TextTag : int32_t { kEndThink, kThink, kOpen };
const TagAutomaton kText({"</think>", "<think>"});
const TagAutomaton kTextAndCalls({"</think>", "<think>", "<｜DSML｜"});
enum CallsTag : int32_t { kInvoke, kParameter, kClose };
const TagAutomaton kCalls({"invoke name=\"", "parameter name=\"", "</｜DSML｜"});
const TagAutomaton kValue({"</｜DSML｜"});

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

// One byte inside a JSON string.
std::string escaped(char c) {
  if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') return std::string(1, c);
  const std::string whole = quoted(std::string_view(&c, 1));
  return whole.substr(1, whole.size() - 2);
}

}  // namespace

DsmlOutputParser::DsmlOutputParser(OutputParserOptions options)
    : options_(std::move(options)),
      state_(options_.start == OutputStart::reasoning ? State::reasoning : State::content),
      leading_(!options_.continues) {}

const TagAutomaton* DsmlOutputParser::automaton() const {
  switch (state_) {
    case State::reasoning:
    case State::content:
      return options_.tools.empty() ? &kText : &kTextAndCalls;
    case State::calls:
    case State::args:
      return &kCalls;
    case State::string_value:
    case State::json_value:
      return &kValue;
    default:
      return nullptr;
  }
}

void DsmlOutputParser::enter(State state) {
  state_ = state;
  node_ = 0;
  held_.clear();
  word_.clear();
}

void DsmlOutputParser::push(std::string_view bytes, int64_t token_index, std::vector<OutputEvent>& events) {
  out_.begin_push(token_index, events);
  for (const char c : bytes) byte(c);
  out_.flush(false);
}

void DsmlOutputParser::byte(char c) {
  const TagAutomaton* tags = automaton();
  if (tags == nullptr) {
    released(c);
    return;
  }
  held_ += c;
  node_ = tags->step(node_, c);
  const auto keep = static_cast<size_t>(tags->depth(node_));
  const int32_t found = tags->match(node_);
  const std::string free = held_.substr(0, held_.size() - keep), kept = held_.substr(free.size());
  const State before = state_;
  held_ = kept;
  for (size_t i = 0; i < free.size(); ++i) {
    released(free[i]);
    if (state_ == before) continue;
    // The state changed under the bytes that were held: they are read again in the new one.
    for (const char again : free.substr(i + 1) + kept) byte(again);
    return;
  }
  if (found < 0) return;
  held_.clear();
  node_ = 0;
  tag(found);
}

void DsmlOutputParser::released(char c) {
  switch (state_) {
    case State::reasoning:
    case State::content:
      text_byte(c);
      return;
    case State::calls:
      swallow(std::string_view(&c, 1));
      return;
    case State::name:
      name_byte(c);
      return;
    case State::args:
      args_byte(c);
      return;
    case State::body:
      body_byte(c);
      return;
    case State::parameter_name:
      parameter_name_byte(c);
      return;
    case State::parameter_type:
      parameter_type_byte(c);
      return;
    case State::string_value:
      string_bytes(escaped(c));
      return;
    case State::json_value:
      word_ += c;
      if (word_.size() > kLongestJson) json_becomes_string();
      return;
    case State::closing:
      closing_byte(c);
      return;
    case State::done:
      ++n_dropped_;
      return;
  }
}

void DsmlOutputParser::tag(int32_t index) {
  switch (state_) {
    case State::reasoning:
    case State::content:
      text_tag(index);
      return;
    case State::calls:
    case State::args:
      if (index == kInvoke) {
        if (state_ == State::args) end_call();  // the one before was not closed
        if (n_calls_ == 0) swallow("invoke name=\"");
        if (state_ != State::content) enter(State::name);
      } else if (index == kParameter) {
        if (state_ == State::args)
          enter(State::parameter_name);
        else
          swallow("parameter name=\"");
      } else {
        if (state_ == State::calls) swallow("</｜DSML｜");
        if (state_ != State::content) enter(State::closing);
      }
      return;
    case State::string_value:
    case State::json_value:
      end_value();
      enter(State::closing);
      return;
    default:
      return;
  }
}

// ---- text ----

void DsmlOutputParser::flush_newlines() {
  const auto kind = state_ == State::reasoning ? OutputEvent::Kind::reasoning : OutputEvent::Kind::content;
  if (!leading_)
    out_.text(kind, std::string(static_cast<size_t>(n_newlines_), '\n'));
  else
    n_dropped_ += n_newlines_;
  n_newlines_ = 0;
}

void DsmlOutputParser::text_byte(char c) {
  if (c == '\n') {
    ++n_newlines_;
    return;
  }
  flush_newlines();
  leading_ = false;
  out_.text(state_ == State::reasoning ? OutputEvent::Kind::reasoning : OutputEvent::Kind::content,
            std::string_view(&c, 1));
}

void DsmlOutputParser::text_tag(int32_t index) {
  if (index == kOpen) {
    swallowed_ = std::string(leading_ ? 0 : static_cast<size_t>(n_newlines_), '\n') + "<｜DSML｜";
    if (leading_) n_dropped_ += n_newlines_;
    n_newlines_ = 0;
    leading_ = false;
    enter(State::calls);
    return;
  }
  const bool thinking = state_ == State::reasoning;
  if (index == kEndThink) {
    n_dropped_ += 8;
    if (!thinking) return;  // a stray one
    n_dropped_ += n_newlines_;
    n_newlines_ = 0;
    leading_ = true;
    enter(State::content);
  } else if (thinking) {
    n_dropped_ += 7;      // a second <think>
  } else if (leading_) {  // the model thinks although it was not asked to
    n_dropped_ += 7 + n_newlines_;
    n_newlines_ = 0;
    enter(State::reasoning);
  } else {
    flush_newlines();
    out_.text(OutputEvent::Kind::content, "<think>");
  }
}

// ---- calls ----

void DsmlOutputParser::swallow(std::string_view bytes) {
  if (n_calls_ > 0) {
    n_dropped_ += static_cast<int64_t>(bytes.size());
    return;
  }
  swallowed_ += bytes;
  if (swallowed_.size() <= kLongestSwallowed) return;
  restore_swallowed();  // this was prose about calls
  enter(State::content);
}

void DsmlOutputParser::restore_swallowed() { out_.text(OutputEvent::Kind::content, std::exchange(swallowed_, {})); }

void DsmlOutputParser::name_byte(char c) {
  if (c == '"') {
    begin_call();
    return;
  }
  word_ += c;
  if (n_calls_ == 0) swallow(std::string_view(&c, 1));
  if (state_ == State::name && word_.size() > kLongestName) enter(State::calls);
}

void DsmlOutputParser::begin_call() {
  const std::string name = word_;
  declared_ = nullptr;
  for (const Json& tool : options_.tools) {
    const Json* function = tool.find("function");
    const Json* own = function == nullptr ? nullptr : function->find("name");
    const size_t at = name.find("::");
    if (own != nullptr && own->is_string() &&
        (*own->as_string() == name || (at != std::string::npos && *own->as_string() == name.substr(at + 2))))
      declared_ = function;
  }
  parameters_.clear();
  wrapper_.clear();
  wrapper_name_.clear();
  args_started_ = body_seen_ = false;
  n_dropped_ += static_cast<int64_t>(swallowed_.size());
  swallowed_.clear();
  out_.tool_begin(n_calls_++, name);
  enter(State::args);
}

const Json* DsmlOutputParser::property(std::string_view name) const {
  const Json* parameters = declared_ == nullptr ? nullptr : declared_->find("parameters");
  const Json* properties = parameters == nullptr ? nullptr : parameters->find("properties");
  return properties == nullptr ? nullptr : properties->find(name);
}

bool DsmlOutputParser::is_string_property(std::string_view name) const {
  const Json* schema = property(name);
  const Json* type = schema == nullptr ? nullptr : schema->find("type");
  return type != nullptr && *type == Json("string");
}

bool DsmlOutputParser::has_required() const {
  const Json* parameters = declared_ == nullptr ? nullptr : declared_->find("parameters");
  const Json* required = parameters == nullptr ? nullptr : parameters->find("required");
  return required == nullptr || std::ranges::all_of(required->items(), [&](const Json& name) {
           return name.as_string() == nullptr || parameters_.contains(*name.as_string());
         });
}

void DsmlOutputParser::write_arguments(std::string_view json) {
  out_.text(OutputEvent::Kind::tool_args, json, n_calls_ - 1);
}

void DsmlOutputParser::args_byte(char c) {
  ++n_dropped_;
  if (c != '{' || args_started_ || body_seen_ || !parameters_.empty()) return;
  enter(State::body);
  body_depth_ = 0;
  body_in_string_ = body_escaped_ = false;
  body_byte(c);
}

// Some models write the arguments as one JSON object.
void DsmlOutputParser::body_byte(char c) {
  word_ += c;
  if (body_escaped_)
    body_escaped_ = false;
  else if (body_in_string_ && c == '\\')
    body_escaped_ = true;
  else if (c == '"')
    body_in_string_ = !body_in_string_;
  else if (!body_in_string_ && (c == '{' || c == '['))
    ++body_depth_;
  else if (!body_in_string_ && (c == '}' || c == ']'))
    --body_depth_;
  if (body_depth_ > 0 && word_.size() <= kLongestJson) return;
  const auto parsed = Json::parse(word_);
  body_seen_ = parsed && parsed->is_object();
  if (body_seen_) {
    write_arguments(word_);
    for (const auto& [key, value] : parsed->members()) parameters_.insert(key);
  } else {
    n_dropped_ += static_cast<int64_t>(word_.size());
  }
  enter(State::args);
}

void DsmlOutputParser::parameter_name_byte(char c) {
  if (c != '"') {
    word_ += c;
    if (word_.size() > kLongestName) enter(State::args);
    return;
  }
  parameter_ = word_;
  enter(State::parameter_type);
}

void DsmlOutputParser::parameter_type_byte(char c) {
  if (c != '>') {
    word_ += c;
    if (word_.size() > kLongestTag) enter(State::args);
    return;
  }
  const bool is_string = word_.find("string=\"true\"") != std::string::npos;
  typed_ = is_string || word_.find("string=\"false\"") != std::string::npos;
  enter(is_string ? State::string_value : State::json_value);
  begin_value();
}

// Opens the parameter: `{"name": ` or `, "name": `. A repeated one is dropped; after a JSON body all are.
void DsmlOutputParser::begin_value() {
  drop_value_ = body_seen_ || !parameters_.insert(parameter_).second;
  if (drop_value_) return;
  if (!wrapper_name_.empty()) {  // a second parameter: the first was an ordinary one
    write_arguments("{" + quoted(wrapper_name_) + ": " + wrapper_);
    args_started_ = true;
    wrapper_name_.clear();
  }
  const bool may_wrap = state_ == State::json_value && parameters_.size() == 1 && declared_ != nullptr &&
                        (parameter_ == "arguments" || parameter_ == "input") && property(parameter_) == nullptr;
  if (may_wrap) return;
  write_arguments((args_started_ ? ", " : "{") + quoted(parameter_) + ": ");
  args_started_ = true;
  if (state_ == State::string_value) write_arguments("\"");
}

void DsmlOutputParser::string_bytes(std::string_view bytes) {
  if (drop_value_)
    n_dropped_ += static_cast<int64_t>(bytes.size());
  else
    write_arguments(bytes);
}

// A value too long to be held goes on as a string.
void DsmlOutputParser::json_becomes_string() {
  if (!drop_value_ && !args_started_) write_arguments("{" + quoted(parameter_) + ": ");
  args_started_ = args_started_ || !drop_value_;
  string_bytes("\"");
  for (const char c : std::exchange(word_, {})) string_bytes(escaped(c));
  state_ = State::string_value;  // the automaton is the same and goes on
}

void DsmlOutputParser::end_value() {
  if (state_ == State::string_value) {
    string_bytes("\"");
    return;
  }
  const std::string_view text = trimmed(word_);
  const auto parsed = Json::parse(text);
  const bool is_json = parsed && (typed_ || !is_string_property(parameter_));
  const std::string json = is_json ? std::string(text) : quoted(word_);
  if (drop_value_) {
    n_dropped_ += static_cast<int64_t>(word_.size());
  } else if (!args_started_) {  // begin_value left it open
    if (is_json && parsed->is_object()) {
      wrapper_ = json;
      wrapper_name_ = parameter_;
    } else {
      write_arguments("{" + quoted(parameter_) + ": " + json);
      args_started_ = true;
    }
  } else {
    write_arguments(json);
  }
}

void DsmlOutputParser::end_call() {
  if (!wrapper_name_.empty())
    write_arguments(wrapper_);
  else if (!body_seen_)
    write_arguments(args_started_ ? "}" : "{}");
  wrapper_name_.clear();
  out_.tool_end(n_calls_ - 1);
  ++n_ended_;
}

void DsmlOutputParser::closing_byte(char c) {
  if (n_calls_ == 0) swallow(std::string_view(&c, 1));
  if (state_ != State::closing) return;
  const bool in_call = n_calls_ > n_ended_;
  if (c != '>') {
    word_ += c;
    if (word_.size() > kLongestTag) enter(in_call ? State::args : State::calls);
    return;
  }
  const bool calls = word_.find("calls") != std::string::npos;
  if (in_call && (calls || word_.find("invoke") != std::string::npos)) {
    end_call();
    enter(calls ? State::done : State::calls);
  } else if (in_call) {
    enter(State::args);
  } else if (calls && n_calls_ > 0) {
    enter(State::done);
  } else {
    enter(State::calls);
  }
}

// ---- the end ----

OutputEnd DsmlOutputParser::finish(bool length, std::vector<OutputEvent>& events) {
  out_.begin_push(-1, events);
  const std::string held = std::exchange(held_, {});
  switch (state_) {
    case State::reasoning:
    case State::content:
      if (length)  // the beginning of a tag that the token limit cut is no text
        n_dropped_ += static_cast<int64_t>(held.size());
      else
        for (const char c : held) text_byte(c);
      flush_newlines();
      break;
    case State::calls:
    case State::name:
    case State::closing:
      if (length) {
        n_dropped_ += static_cast<int64_t>(swallowed_.size() + held.size());
      } else if (n_calls_ == 0) {
        swallowed_ += held;
        restore_swallowed();
      }
      break;
    case State::string_value:
      for (const char c : held) string_bytes(escaped(c));
      break;
    default:
      break;
  }
  // A call that was not closed is closed where nothing can be missing; one that was cut stays open.
  const bool open = n_calls_ > n_ended_;
  const bool closable = state_ == State::args || state_ == State::closing || state_ == State::string_value;
  if (open && !length && closable && has_required()) {
    if (state_ == State::string_value) string_bytes("\"");
    end_call();
  }
  state_ = State::done;
  out_.flush(true);
  if (length) return OutputEnd::length;
  return n_ended_ > 0 ? OutputEnd::tool_calls : OutputEnd::stop;
}

std::unique_ptr<OutputParser> make_dsml_output_parser(OutputParserOptions options) {
  return std::make_unique<DsmlOutputParser>(std::move(options));
}

}  // namespace gannet
