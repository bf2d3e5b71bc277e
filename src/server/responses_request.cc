#include "server/responses_request.h"

#include <fmt/format.h>

namespace gannet::server {
namespace {

using MaybeError = std::optional<ApiError>;

// A reasoning item's encrypted_content that this server wrote: the text itself behind a mark of the version.
constexpr std::string_view kReasoningMark = "gannet1:";

// Text of a string or of a list of text parts.
MaybeError read_text(const Json& content, const std::string& field, std::string& out) {
  if (const std::string* text = content.as_string()) {
    out = *text;
    return std::nullopt;
  }
  if (!content.is_array()) return invalid_type(field, "a string or a list of parts", content);
  for (size_t i = 0; i < content.items().size(); ++i) {
    const Json& part = content.items()[i];
    const std::string where = fmt::format("{}[{}]", field, i);
    if (!part.is_object()) return invalid_type(where, "an object", part);
    std::string type, text;
    if (auto error = need_string(part, "type", where, type)) return error;
    if (type == "input_image" || type == "input_file")
      return unsupported(where, fmt::format("{}: parts of type '{}' are not supported yet", where, type));
    if (auto error = need_string(part, type == "refusal" ? "refusal" : "text", where, text)) return error;
    if (i > 0) out += "\n\n";
    out += text;
  }
  return std::nullopt;
}

// Collects items into messages: reasoning, text and calls of one turn become one assistant message.
class Turns {
 public:
  MaybeError item(const Json& item, const std::string& field) {
    if (!item.is_object()) return invalid_type(field, "an object", item);
    const Json* kind = present(item, "type");
    std::string type = "message";
    if (kind != nullptr) {
      if (kind->as_string() == nullptr) return invalid_type(field + ".type", "a string", *kind);
      type = *kind->as_string();
    }
    if (type == "message") return message(item, field);
    if (type == "reasoning") return reasoning(item, field);
    if (type == "function_call" || type == "custom_tool_call") return call(item, field, type == "custom_tool_call");
    if (type == "function_call_output" || type == "custom_tool_call_output") return output(item, field);
    if (type == "item_reference")
      return unsupported(field, fmt::format("{}: responses are not stored, so nothing can be referred to", field));
    return unsupported(field + ".type",
                       fmt::format("{}: items of type '{}' are not supported", field, type.substr(0, 60)));
  }

  Json take() {
    flush();
    return std::move(messages_);
  }
  void push(const char* role, std::string text) {
    flush();
    Json out = Json::object();
    out.set("role", role);
    out.set("content", std::move(text));
    messages_.push(std::move(out));
  }

 private:
  MaybeError message(const Json& item, const std::string& field) {
    std::string role, text;
    if (auto error = need_string(item, "role", field, role)) return error;
    const Json* content = present(item, "content");
    if (content == nullptr) return missing(field + ".content");
    if (auto error = read_text(*content, field + ".content", text)) return error;
    if (role == "assistant") {
      if (has_text_) text_ += "\n\n";
      text_ += text;
      has_text_ = open_ = true;
      return std::nullopt;
    }
    if (role != "user" && role != "system" && role != "developer")
      return invalid_value(field + ".role", fmt::format("{}.role is '{}', it must be user, system, developer or "
                                                        "assistant",
                                                        field, role.substr(0, 60)));
    push(role == "user" ? "user" : role == "system" ? "system" : "developer", std::move(text));
    return std::nullopt;
  }

  MaybeError reasoning(const Json& item, const std::string& field) {
    std::string text;
    if (const Json* content = present(item, "content"))
      if (auto error = read_text(*content, field + ".content", text)) return error;
    if (const Json* sealed = present(item, "encrypted_content"); text.empty() && sealed != nullptr)
      if (const std::string* bytes = sealed->as_string(); bytes != nullptr && bytes->starts_with(kReasoningMark))
        text = bytes->substr(kReasoningMark.size());
    if (text.empty()) return std::nullopt;
    if (!reasoning_.empty()) reasoning_ += "\n";
    reasoning_ += text;
    open_ = true;
    return std::nullopt;
  }

  MaybeError call(const Json& item, const std::string& field, bool custom) {
    std::string id, name, arguments;
    if (auto error = need_string(item, "call_id", field, id)) return error;
    if (auto error = need_string(item, "name", field, name)) return error;
    if (auto error = need_string(item, custom ? "input" : "arguments", field, arguments)) return error;
    if (custom) {
      Json wrapped = Json::object();
      wrapped.set("input", arguments);
      arguments = wrapped.dump_python();
    }
    Json function = Json::object();
    if (const Json* space = present(item, "namespace")) function.set("namespace", *space);
    function.set("name", std::move(name));
    function.set("arguments", std::move(arguments));
    Json& out = calls_.push(Json::object());
    out.set("id", std::move(id));
    out.set("type", "function");
    out.set("function", std::move(function));
    open_ = true;
    return std::nullopt;
  }

  MaybeError output(const Json& item, const std::string& field) {
    std::string id, text;
    if (auto error = need_string(item, "call_id", field, id)) return error;
    const Json* content = present(item, "output");
    if (content == nullptr) return missing(field + ".output");
    if (auto error = read_text(*content, field + ".output", text)) return error;
    flush();
    Json& out = messages_.push(Json::object());
    out.set("role", "tool");
    out.set("tool_call_id", std::move(id));
    out.set("content", std::move(text));
    return std::nullopt;
  }

  void flush() {
    if (!std::exchange(open_, false)) return;
    Json& out = messages_.push(Json::object());
    out.set("role", "assistant");
    out.set("content", has_text_ ? Json(text_) : Json());
    if (!reasoning_.empty()) out.set("reasoning_content", reasoning_);
    if (!calls_.items().empty()) out.set("tool_calls", std::exchange(calls_, Json::array()));
    text_.clear();
    reasoning_.clear();
    has_text_ = false;
  }

  Json messages_ = Json::array(), calls_ = Json::array();
  std::string text_, reasoning_;
  bool open_ = false, has_text_ = false;
};

MaybeError read_input(const Json& body, Json& chat) {
  Turns turns;
  const auto instructions = string_field(body, "instructions");
  if (!instructions) return instructions.error();
  if (*instructions && !(*instructions)->empty()) turns.push("system", **instructions);
  const Json* input = present(body, "input");
  if (input == nullptr) return missing("input");
  if (const std::string* text = input->as_string()) {
    turns.push("user", *text);
  } else if (input->is_array()) {
    for (size_t i = 0; i < input->items().size(); ++i)
      if (auto error = turns.item(input->items()[i], fmt::format("input[{}]", i))) return error;
  } else {
    return invalid_type("input", "a string or a list of items", *input);
  }
  chat.set("messages", turns.take());
  return std::nullopt;
}

// A tool that takes free text is shown to the model as a function of one string.
Json custom_parameters() {
  return *Json::parse(R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"]})");
}

MaybeError read_tools(const Json& body, ResponsesRequest& out) {
  const Json* tools = present(body, "tools");
  if (tools == nullptr) return std::nullopt;
  if (!tools->is_array()) return invalid_type("tools", "a list", *tools);
  Json list = Json::array();
  for (size_t i = 0; i < tools->items().size(); ++i) {
    const Json& tool = tools->items()[i];
    const std::string where = fmt::format("tools[{}]", i);
    if (!tool.is_object()) return invalid_type(where, "an object", tool);
    std::string type, name;
    if (auto error = need_string(tool, "type", where, type)) return error;
    if (type != "function" && type != "custom") continue;  // tools that run at the vendor do not exist here
    if (auto error = need_string(tool, "name", where, name)) return error;
    Json function = Json::object();
    function.set("name", name);
    if (const Json* description = present(tool, "description")) function.set("description", *description);
    if (type == "custom") {
      out.custom_tools.insert(name);
      function.set("parameters", custom_parameters());
    } else if (const Json* parameters = present(tool, "parameters")) {
      function.set("parameters", *parameters);
    }
    Json& entry = list.push(Json::object());
    entry.set("type", "function");
    entry.set("function", std::move(function));
  }
  if (!list.items().empty()) out.chat.set("tools", std::move(list));
  return std::nullopt;
}

MaybeError read_options(const Json& body, ResponsesRequest& out) {
  if (const Json* choice = present(body, "tool_choice"); choice != nullptr && choice->is_string())
    out.chat.set("tool_choice", *choice);
  if (const Json* reasoning = present(body, "reasoning")) {
    if (!reasoning->is_object()) return invalid_type("reasoning", "an object", *reasoning);
    if (const Json* effort = present(*reasoning, "effort")) out.chat.set("reasoning_effort", *effort);
    const Json* summary = present(*reasoning, "summary");
    out.summary = summary != nullptr && *summary != Json("none");
  }
  const auto parallel = bool_field(body, "parallel_tool_calls");
  if (!parallel) return parallel.error();
  out.parallel_calls = parallel->value_or(true);
  if (const Json* include = present(body, "include"))
    for (const Json& item : include->items())
      out.encrypted_reasoning |= item == Json("reasoning.encrypted_content");
  return std::nullopt;
}

MaybeError refuse_state(const Json& body) {
  for (const char* key : {"previous_response_id", "conversation"})
    if (present(body, key) != nullptr)
      return unsupported(key,
                         fmt::format("{}: responses are not stored; send the whole conversation as input", key));
  if (present(body, "prompt") != nullptr)
    return unsupported("prompt", "prompt: stored templates do not exist here; use input");
  const auto background = bool_field(body, "background");
  if (!background) return background.error();
  if (background->value_or(false)) return unsupported("background", "background: responses are not stored");
  if (const Json* truncation = present(body, "truncation");
      truncation != nullptr && *truncation != Json("disabled"))
    return unsupported("truncation", fmt::format("truncation is {}, only \"disabled\" is supported",
                                                 truncation->dump().substr(0, 60)));
  return std::nullopt;
}

}  // namespace

ApiResult<ResponsesRequest> read_responses(const Json& body, int32_t vocab) {
  ResponsesRequest out;
  out.chat = Json::object();
  Json common = body;
  if (const Json* most = present(body, "max_output_tokens")) common.set("max_tokens", *most);
  common.set("max_completion_tokens", Json());
  common.set("n", Json());
  auto fields = read_common(common, vocab);
  if (!fields) {
    ApiError error = fields.error();
    if (error.param == "max_tokens") error.param = "max_output_tokens";
    return tl::make_unexpected(std::move(error));
  }
  out.fields = std::move(*fields);
  if (out.fields.generation.max_tokens == 0)
    return tl::make_unexpected(invalid_value("max_output_tokens", "max_output_tokens is 0, it must be at least 1"));
  std::optional<ApiError> error = refuse_state(body);
  if (!error) error = read_input(body, out.chat);
  if (!error) error = read_tools(body, out);
  if (!error) error = read_options(body, out);
  if (error) return tl::make_unexpected(std::move(*error));
  return out;
}

}  // namespace gannet::server
