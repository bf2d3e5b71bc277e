#include "text/output_parser_json.h"

#include <utility>

namespace gannet {
namespace {

constexpr size_t kLongestCall = 1 << 20;
constexpr std::string_view kOpen = "<tool_call>", kPython = "<|python_tag|>";

enum Tag : int32_t { kThink, kEndThink, kOpenCall, kEndCall };
const TagAutomaton kTextTags({"<think>", "</think>"});
const TagAutomaton kTaggedTags({"<think>", "</think>", "<tool_call>", "</tool_call>"});
const TagAutomaton kBareTags({"<think>", "</think>", "<|python_tag|>"});

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// One line break at each end belongs to the markup.
std::string_view without_frame(std::string_view text) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// The text between `open` and `close` from `at` on, and moves `at` behind it.
std::optional<std::string_view> between(std::string_view text, size_t& at, std::string_view open,
                                        std::string_view close) {
  const size_t begin = text.find(open, at);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = text.find(close, begin + open.size());
  if (end == std::string_view::npos) return std::nullopt;
  at = end + close.size();
  return text.substr(begin + open.size(), end - begin - open.size());
}

}  // namespace

JsonOutputParser::JsonOutputParser(Style style, OutputParserOptions options)
    : style_(style),
      options_(std::move(options)),
      state_(options_.start == OutputStart::reasoning ? State::reasoning : State::content),
      leading_(!options_.continues) {}

void JsonOutputParser::push(std::string_view bytes, int64_t token_index, std::vector<OutputEvent>& events) {
  out_.begin_push(token_index, events);
  for (const char c : bytes) byte(c);
  out_.flush(false);
}

OutputEnd JsonOutputParser::finish(bool length, std::vector<OutputEvent>& events) {
  out_.begin_push(-1, events);
  const std::string rest = std::exchange(held_, {});
  node_ = 0;
  // Cut inside a marker: the beginning of a tag is no text when the token limit ended the answer.
  if (!length)
    for (const char c : rest) released(c);
  else
    n_dropped_ += static_cast<int64_t>(rest.size());
  if (state_ == State::call) end_call(!length);
  flush_blanks();
  out_.flush(true);
  if (length) return OutputEnd::length;
  return n_calls_ > 0 ? OutputEnd::tool_calls : OutputEnd::stop;
}

void JsonOutputParser::enter(State state) {
  state_ = state;
  node_ = 0;
}

void JsonOutputParser::byte(char c) {
  if (state_ == State::call && style_ == Style::bare) return object_byte(c);
  const TagAutomaton& tags = options_.tools.empty() ? kTextTags : style_ == Style::tagged ? kTaggedTags : kBareTags;
  held_ += c;
  node_ = tags.step(node_, c);
  const auto keep = static_cast<size_t>(tags.depth(node_));
  const int32_t found = tags.match(node_);
  const std::string free = held_.substr(0, held_.size() - keep);
  held_.erase(0, free.size());
  for (size_t i = 0; i < free.size(); ++i) {
    const State before = state_;
    released(free[i]);
    if (state_ == before) continue;
    // A bare object began: what was held is read again as part of it.
    const std::string again = free.substr(i + 1) + std::exchange(held_, {});
    for (const char next : again) byte(next);
    return;
  }
  if (found < 0) return;
  held_.clear();
  node_ = 0;
  tag(found);
}

void JsonOutputParser::released(char c) {
  if (state_ != State::call) return text_byte(c);
  body_ += c;
  if (body_.size() <= kLongestCall) return;
  restore();
}

void JsonOutputParser::flush_blanks() {
  if (leading_)
    n_dropped_ += static_cast<int64_t>(blanks_.size());
  else
    out_.text(state_ == State::reasoning ? OutputEvent::Kind::reasoning : OutputEvent::Kind::content, blanks_);
  blanks_.clear();
}

void JsonOutputParser::text_byte(char c) {
  if (c == '\n' || (is_blank(c) && !blanks_.empty())) {
    blanks_ += c;
    return;
  }
  // A call may follow only at the front, or after another call.
  if (state_ == State::content && style_ == Style::bare && !options_.tools.empty() && leading_) {
    if (c == '{') {
      begin_call("");
      return object_byte(c);
    }
    if (is_blank(c) || (n_calls_ > 0 && c == ';')) {
      ++n_dropped_;
      return;
    }
  }
  flush_blanks();
  leading_ = false;
  out_.text(state_ == State::reasoning ? OutputEvent::Kind::reasoning : OutputEvent::Kind::content,
            std::string_view(&c, 1));
}

void JsonOutputParser::tag(int32_t index) {
  if (state_ == State::call) {
    if (index == kEndCall)
      end_call(true);
    else if (index == kOpenCall) {  // the one before was not closed
      end_call(true);
      begin_call(kOpen);
    } else {
      body_ += index == kThink ? "<think>" : "</think>";
    }
    return;
  }
  const bool thinking = state_ == State::reasoning;
  if (index == kThink) {
    if (!thinking && !leading_) {
      flush_blanks();
      out_.text(OutputEvent::Kind::content, "<think>");
      return;
    }
    n_dropped_ += 7;
    if (thinking) return;
    flush_blanks();
    enter(State::reasoning);
  } else if (index == kEndThink) {
    n_dropped_ += 8;
    if (!thinking) return;
    n_dropped_ += static_cast<int64_t>(blanks_.size());
    blanks_.clear();
    leading_ = true;
    enter(State::content);
  } else if (index == kOpenCall) {
    begin_call(style_ == Style::tagged ? kOpen : kPython);
  } else {
    n_dropped_ += 12;  // a stray </tool_call>
  }
}

void JsonOutputParser::begin_call(std::string_view opening) {
  opening_ = (leading_ ? "" : blanks_) + std::string(opening);
  blanks_.clear();
  body_.clear();
  depth_ = 0;
  in_string_ = escaped_ = false;
  enter(State::call);
}

// One byte of a bare object; the last bracket ends it.
void JsonOutputParser::object_byte(char c) {
  body_ += c;
  if (body_.size() > kLongestCall) return restore();
  if (escaped_) {
    escaped_ = false;
  } else if (in_string_) {
    escaped_ = c == '\\';
    in_string_ = c != '"';
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (c == '}' || c == ']') {
    if (--depth_ <= 0) end_call(true);
  } else if (depth_ == 0 && !is_blank(c)) {
    return restore();  // <|python_tag|> and then no object: the built-in tools of Llama 3, which nobody declared
  }
  if (state_ == State::call && !may_be_call()) restore();
}

// A JSON answer that is no call is told from one by its first key, so that it is not kept back.
bool JsonOutputParser::may_be_call() const {
  if (body_.size() > 64) return true;
  std::string dense;
  for (const char c : body_)
    if (!is_blank(c)) dense += c;
  constexpr std::string_view kCall = "{\"name\"", kTyped = "{\"type\"";
  const std::string_view front = std::string_view(dense).substr(0, kCall.size());
  return kCall.starts_with(front) || kTyped.starts_with(front);
}

void JsonOutputParser::end_call(bool whole) {
  if (!whole) {
    n_dropped_ += static_cast<int64_t>(opening_.size() + body_.size());
    body_.clear();
    return enter(State::content);
  }
  if (!emit_call(trimmed(body_))) return restore();
  opening_.clear();
  body_.clear();
  leading_ = true;
  enter(State::content);
}

void JsonOutputParser::restore() {
  enter(State::content);
  leading_ = false;
  out_.text(OutputEvent::Kind::content, std::exchange(opening_, {}));
  out_.text(OutputEvent::Kind::content, std::exchange(body_, {}));
}

bool JsonOutputParser::emit_call(std::string_view body) {
  return body.starts_with("<function=") ? emit_function_call(body) : emit_json_call(body);
}

bool JsonOutputParser::emit_json_call(std::string_view body) {
  const auto call = Json::parse(body);
  if (!call || !call->is_object()) return false;
  const Json* name = call->find("name");
  if (name == nullptr || name->as_string() == nullptr || name->as_string()->empty()) return false;
  const Json* arguments = call->find("arguments");
  if (arguments == nullptr) arguments = call->find("parameters");
  if (arguments == nullptr || arguments->is_null()) {
    if (style_ == Style::bare) return false;  // a JSON answer that happens to have a name
    emit(*name->as_string(), Json::object());
    return true;
  }
  if (const std::string* text = arguments->as_string()) {  // encoded twice
    const auto inner = Json::parse(*text);
    if (!inner || !inner->is_object()) return false;
    emit(*name->as_string(), *inner);
    return true;
  }
  if (!arguments->is_object()) return false;
  emit(*name->as_string(), *arguments);
  return true;
}

// <function=NAME> <parameter=KEY> VALUE </parameter> ... </function>, as Qwen3-Coder writes it.
bool JsonOutputParser::emit_function_call(std::string_view body) {
  const size_t end_of_name = body.find('>');
  if (end_of_name == std::string_view::npos) return false;
  const std::string_view name = body.substr(10, end_of_name - 10);
  if (name.empty() || name.size() > 256) return false;
  Json arguments = Json::object();
  for (size_t at = end_of_name; const auto parameter = between(body, at, "<parameter=", "</parameter>");) {
    const size_t end = parameter->find('>');
    if (end == std::string_view::npos) return false;
    const std::string_view key = parameter->substr(0, end);
    arguments.set(key, typed_value(name, key, without_frame(parameter->substr(end + 1))));
  }
  emit(name, arguments);
  return true;
}

// The value of a parameter that came as text: JSON where the tool's schema says that it is no string.
Json JsonOutputParser::typed_value(std::string_view function, std::string_view parameter,
                                   std::string_view text) const {
  for (const Json& tool : options_.tools) {
    const Json* at = tool.find("function");
    const Json* name = at == nullptr ? nullptr : at->find("name");
    if (name == nullptr || name->as_string() == nullptr || *name->as_string() != function) continue;
    for (const std::string_view key : {std::string_view("parameters"), std::string_view("properties"), parameter}) {
      at = at == nullptr ? nullptr : at->find(key);
    }
    const Json* type = at == nullptr ? nullptr : at->find("type");
    if (type == nullptr || *type == Json("string")) break;
    if (auto value = Json::parse(trimmed(text))) return std::move(*value);
  }
  return Json(text);
}

void JsonOutputParser::emit(std::string_view name, const Json& arguments) {
  out_.tool_begin(n_calls_, name);
  out_.text(OutputEvent::Kind::tool_args, arguments.dump_python(), n_calls_);
  out_.tool_end(n_calls_);
  ++n_calls_;
}

}  // namespace gannet
