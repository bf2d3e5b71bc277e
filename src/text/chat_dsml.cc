#include "text/chat_dsml.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/chat_deepseek_v41.h"

namespace gannet {
namespace {

constexpr std::string_view kToolsHead =
    "## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "
    "\"<｜DSML｜ calls>\" block like the following:\n\n"
    "<｜DSML｜ calls>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜ parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</｜DSML｜ parameter>\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>\n\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types (numbers, "
    "booleans, "
    "arrays, objects), pass the value in JSON format and set `string=\"false\"`.\n\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside "
    "<think>...</think> BEFORE any tool calls or final response.\n\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n\n"
    "### Available Tool Schemas\n\n";
constexpr std::string_view kToolsTail =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n";

struct Namespace {
  std::string name, description;
};

Result<Namespace> namespace_of(const Json& tool, const Json& function, size_t index) {
  Namespace found;
  for (const Json* holder : {&tool, &function}) {
    const Json* value = holder->find("namespace");
    if (value == nullptr || value->is_null()) continue;
    const Json* name = value->is_object() ? value->find("name") : value;
    const Json* description = value->is_object() ? value->find("description") : nullptr;
    if (name == nullptr || !name->is_string())
      return Error{Errc::bad_request,
                   fmt::format("tools[{}].namespace: expected a string, or an object with a name", index)};
    const std::string& text = *name->as_string();
    if (text.find("::") != std::string::npos)
      return Error{Errc::bad_request, fmt::format("tools[{}].namespace: must not hold '::'", index)};
    if (!found.name.empty() && found.name != text)
      return Error{Errc::bad_request, fmt::format("tools[{}]: two namespaces claim the tool", index)};
    found.name = text;
    if (description != nullptr && description->is_string()) found.description = *description->as_string();
  }
  return found;
}

// The function object as the model sees it.
Result<Json> shown_tool(const Json& tool, size_t index) {
  const Json* function = tool.find("function");
  const Json* name = function == nullptr ? nullptr : function->find("name");
  if (name == nullptr || !name->is_string())
    return Error{Errc::bad_request, fmt::format("tools[{}].function.name: expected a string", index)};
  GANNET_ASSIGN(const Namespace space, namespace_of(tool, *function, index));
  Json shown = *function;
  std::erase_if(shown.members(), [](const Json::Member& member) { return member.first == "namespace"; });
  const std::string bare = *name->as_string();
  const size_t at = bare.find("::");
  if (at != std::string::npos && (!space.name.empty() || bare.find("::", at + 1) != std::string::npos))
    return Error{Errc::bad_request, fmt::format("tools[{}].function.name: '::' more than once", index)};
  if (!space.name.empty()) shown.set("name", space.name + "::" + bare);
  if (!space.description.empty()) {
    const Json* old = shown.find("description");
    const std::string own = old != nullptr && old->is_string() ? *old->as_string() : "";
    shown.set("description", space.description + "\n" + own);
  }
  return shown;
}

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// The object that `arguments` spells, or one with the text itself as the parameter "arguments".
Json arguments_object(const std::string& text) {
  auto parsed = Json::parse(text);
  if (parsed && parsed->is_string()) {  // JSON inside a JSON string: some clients encode twice
    auto inner = Json::parse(*parsed->as_string());
    if (inner) parsed = std::move(inner);
  }
  if (parsed && parsed->is_object()) return std::move(*parsed);
  Json wrapped = Json::object();
  wrapped.set("arguments", text);
  return wrapped;
}

Status write_invoke(SpanWriter& out, const ChatToolCall& call, const std::string& field) {
  if (!valid_name(call.name) || (!call.name_space.empty() && !valid_name(call.name_space)))
    return Error{Errc::bad_request, fmt::format("{}.function.name: must be 1 to 64 of A-Z a-z 0-9 _ -", field)};
  out.own("<｜DSML｜ invoke name=\"");
  if (!call.name_space.empty()) out.client(call.name_space).own("::");
  out.client(call.name).own("\">\n");
  const Json arguments = arguments_object(call.arguments);
  bool first = true;
  for (const auto& [key, value] : arguments.members()) {
    if (key.find_first_of("\"\r\n") != std::string::npos)
      return Error{Errc::bad_request,
                   fmt::format("{}.function.arguments: a parameter name holds a quote or a line break", field)};
    const std::string* text = value.as_string();
    out.own(first ? "<｜DSML｜ parameter name=\"" : "\n<｜DSML｜ parameter name=\"").client(key);
    out.own(text != nullptr ? "\" string=\"true\">" : "\" string=\"false\">");
    out.client(text != nullptr ? *text : value.dump_python()).own("</｜DSML｜ parameter>");
    first = false;
  }
  out.own("\n</｜DSML｜ invoke>");
  return ok();
}

}  // namespace

Status write_dsml_tools(SpanWriter& out, const std::vector<Json>& tools) {
  out.own(kToolsHead);
  for (size_t i = 0; i < tools.size(); ++i) {
    GANNET_ASSIGN(const Json shown, shown_tool(tools[i], i));
    if (i > 0) out.own("\n");
    out.client(shown.dump_python());
  }
  out.own(kToolsTail);
  return ok();
}

Status write_dsml_calls(SpanWriter& out, const ChatMessage& message) {
  out.own("<｜DSML｜ calls>\n");
  for (size_t i = 0; i < message.tool_calls.size(); ++i) {
    GANNET_TRY(write_invoke(out, message.tool_calls[i], fmt::format("{}.tool_calls[{}]", message.field, i)));
    out.own("\n");
  }
  out.own("</｜DSML｜ calls>");
  return ok();
}

}  // namespace gannet
