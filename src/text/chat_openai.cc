#include "text/chat_openai.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/chat_effort.h"

namespace gannet {
namespace {

constexpr size_t kMaxTools = 128;

Error bad(std::string_view field, std::string_view what) {
  return Error{Errc::bad_request, fmt::format("{}: {}", field, what)};
}

// A member that is there and not null.
const Json* present(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<bool> flag(const Json& object, std::string_view key, std::string_view field, bool absent) {
  const Json* value = present(object, key);
  if (value == nullptr) return absent;
  if (!value->is_bool()) return bad(field, "expected a boolean");
  return *value->as_bool();
}

bool valid_name(std::string_view name, size_t longest) {
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

const std::string* tool_name(const Json& tool) {
  const Json* function = tool.find("function");
  const Json* name = function == nullptr ? nullptr : function->find("name");
  return name == nullptr ? nullptr : name->as_string();
}

// `namespace` is a string or {"name", "description"}.
Status check_namespace(const Json& holder, std::string_view field, std::string& name) {
  const Json* value = present(holder, "namespace");
  if (value == nullptr) return ok();
  const std::string where = fmt::format("{}.namespace", field);
  const Json* stated = value->is_object() ? value->find("name") : value;
  if (stated == nullptr || !stated->is_string()) return bad(where, "expected a string, or an object with a name");
  const std::string& text = *stated->as_string();
  if (!valid_name(text, 64)) return bad(where, "must be 1 to 64 of A-Z a-z 0-9 _ -");
  if (!name.empty() && name != text)
    return bad(where, fmt::format("'{}' and '{}' both claim the tool", name, text));
  name = text;
  return ok();
}

Status check_tool(const Json& tool, const std::string& field) {
  if (!tool.is_object()) return bad(field, "expected an object");
  const Json* type = present(tool, "type");
  if (type != nullptr && *type != Json("function"))
    return Error{Errc::unsupported, fmt::format("{}.type: only tools of type function are supported", field)};
  const Json* function = present(tool, "function");
  if (function == nullptr || !function->is_object()) return bad(field + ".function", "expected an object");
  const std::string* name = tool_name(tool);
  if (name == nullptr) return bad(field + ".function.name", "expected a string");
  if (!valid_name(*name, 64)) return bad(field + ".function.name", "must be 1 to 64 of A-Z a-z 0-9 _ -");
  const Json* description = present(*function, "description");
  if (description != nullptr && !description->is_string())
    return bad(field + ".function.description", "expected a string");
  const Json* parameters = present(*function, "parameters");
  if (parameters != nullptr && !parameters->is_object())
    return bad(field + ".function.parameters", "expected an object");
  std::string name_space;
  GANNET_TRY(check_namespace(tool, field, name_space));
  return check_namespace(*function, field + ".function", name_space);
}

Status read_tools(const Json& request, Conversation& out) {
  if (const Json* tools = present(request, "tools")) {
    if (!tools->is_array()) return bad("tools", "expected an array");
    out.tools = tools->items();
  } else if (const Json* functions = present(request, "functions")) {  // the form before `tools`
    if (!functions->is_array()) return bad("functions", "expected an array");
    for (const Json& function : functions->items()) {
      Json tool = Json::object();
      tool.set("type", "function");
      tool.set("function", function);
      out.tools.push_back(std::move(tool));
    }
  }
  if (out.tools.size() > kMaxTools)
    return bad("tools", fmt::format("{} tools, at most {} are allowed", out.tools.size(), kMaxTools));
  for (size_t i = 0; i < out.tools.size(); ++i) GANNET_TRY(check_tool(out.tools[i], fmt::format("tools[{}]", i)));
  return ok();
}

Status name_tool_choice(const Json& choice, Conversation& out) {
  const Json* type = present(choice, "type");
  if (type == nullptr || *type != Json("function"))
    return Error{Errc::unsupported, "tool_choice.type: only a named function is supported"};
  const std::string* name = tool_name(choice);
  if (name == nullptr) return bad("tool_choice.function.name", "expected a string");
  out.tool_choice = {ToolChoice::Kind::named, *name};
  std::erase_if(out.tools, [&](const Json& tool) { return *tool_name(tool) != *name; });
  if (out.tools.empty())
    return bad("tool_choice.function.name", fmt::format("'{}' is not among the tools", name->substr(0, 64)));
  return ok();
}

Status read_tool_choice(const Json& request, Conversation& out) {
  const Json* choice = present(request, "tool_choice");
  if (choice == nullptr) choice = present(request, "function_call");
  if (choice == nullptr) return ok();
  if (choice->is_object()) return name_tool_choice(*choice, out);
  const std::string* text = choice->as_string();
  if (text == nullptr) return bad("tool_choice", "expected a string or an object");
  if (*text == "none") {
    out.tool_choice.kind = ToolChoice::Kind::none;
    out.tools.clear();
  } else if (*text == "required") {
    if (out.tools.empty()) return bad("tool_choice", "'required' needs tools");
    out.tool_choice.kind = ToolChoice::Kind::required;
  } else if (*text != "auto") {
    return bad("tool_choice", "is none of none, auto, required, or a named function");
  }
  return ok();
}

Status read_response_format(const Json& request, const ChatDefaults& defaults, Conversation& out) {
  const Json* format = present(request, "response_format");
  if (format == nullptr) return ok();
  const Json* type = format->is_object() ? format->find("type") : nullptr;
  if (type == nullptr || !type->is_string()) return bad("response_format.type", "expected a string");
  const std::string& name = *type->as_string();
  if (name == "json_schema") {
    const Json* holder = present(*format, "json_schema");
    const Json* schema = holder == nullptr ? nullptr : present(*holder, "schema");
    if (schema == nullptr || !schema->is_object())
      return bad("response_format.json_schema.schema", "expected an object");
    if (defaults.show_response_format) out.response_format = *schema;
  } else if (name == "json_object") {
    Json shown = Json::object();
    shown.set("type", "json_object");
    if (defaults.show_response_format) out.response_format = std::move(shown);
  } else if (name != "text" && name != "structural_tag" && name != "regex" && name != "ebnf" && name != "grammar") {
    return bad("response_format.type", fmt::format("'{}' is not supported", name.substr(0, 60)));
  }
  return ok();
}

// thinking: {"type": "enabled" | "disabled" | "adaptive", "budget_tokens"}
Status read_thinking_field(const Json& request, Thinking& thinking) {
  const Json* value = present(request, "thinking");
  if (value == nullptr) return ok();
  if (!value->is_object()) return bad("thinking", "expected an object");
  const Json* type = present(*value, "type");
  if (type != nullptr) {
    const std::string* name = type->as_string();
    if (name == nullptr || (*name != "enabled" && *name != "disabled" && *name != "adaptive"))
      return bad("thinking.type", "is none of enabled, disabled, adaptive");
    thinking.on = *name != "disabled";
    thinking.on_stated = true;
  }
  if (const Json* budget = present(*value, "budget_tokens")) {
    const auto n = budget->as_int();
    if (!n || *n < 1) return bad("thinking.budget_tokens", "expected a positive integer");
    thinking.budget_tokens = *n;
    if (type == nullptr) thinking.on = thinking.on_stated = true;
  }
  return ok();
}

Status read_thinking(const Json& request, Conversation& out) {
  Thinking& thinking = out.thinking;
  GANNET_TRY(read_thinking_field(request, thinking));
  const Json* kwargs = present(request, "chat_template_kwargs");
  if (kwargs != nullptr) {
    if (!kwargs->is_object()) return bad("chat_template_kwargs", "expected an object");
    out.template_kwargs = *kwargs;
    for (const std::string_view key : {"thinking", "enable_thinking"}) {
      const Json* value = present(*kwargs, key);
      if (value == nullptr || thinking.on_stated) continue;
      if (!value->is_bool()) return bad(fmt::format("chat_template_kwargs.{}", key), "expected a boolean");
      thinking.on = *value->as_bool();
      thinking.on_stated = true;
    }
    GANNET_ASSIGN(thinking.drop_earlier,
                  flag(*kwargs, "drop_thinking", "chat_template_kwargs.drop_thinking", true));
  }
  if (const Json* effort = present(request, "reasoning_effort"))
    return apply_effort(thinking, *effort, "reasoning_effort");
  if (kwargs == nullptr) return ok();
  const Json* effort = present(*kwargs, "reasoning_effort");
  return effort == nullptr ? ok() : apply_effort(thinking, *effort, "chat_template_kwargs.reasoning_effort");
}

// continue_final_message: the last message, of an assistant, is a prefix.
Result<bool> continues_final(const Json& request) {
  GANNET_ASSIGN(const bool open, flag(request, "continue_final_message", "continue_final_message", false));
  GANNET_ASSIGN(const bool prompt, flag(request, "add_generation_prompt", "add_generation_prompt", !open));
  if (open && prompt) return bad("continue_final_message", "cannot be true together with add_generation_prompt");
  if (!open && !prompt) return bad("add_generation_prompt", "false needs continue_final_message");
  return open;
}

}  // namespace

Result<Conversation> conversation_from_openai(const Json& request, const ChatDefaults& defaults) {
  if (!request.is_object()) return bad("request", "expected an object");
  const Json* messages = request.find("messages");
  if (messages == nullptr) return bad("messages", "is required");
  Conversation out;
  out.thinking.on = defaults.thinking;
  out.thinking.effort = defaults.effort;
  GANNET_ASSIGN(const bool open, continues_final(request));
  GANNET_ASSIGN(out.messages, messages_from_openai(*messages, defaults, "messages", open));
  if (open && out.messages.back().role != Role::assistant)
    return bad("continue_final_message", "the last message is not of an assistant");
  GANNET_TRY(read_tools(request, out));
  GANNET_TRY(read_tool_choice(request, out));
  GANNET_TRY(read_response_format(request, defaults, out));
  GANNET_TRY(read_thinking(request, out));
  return out;
}

}  // namespace gannet
