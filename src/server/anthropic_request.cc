#include "server/anthropic_request.h"

#include <fmt/format.h>

namespace gannet::server {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr int32_t kDefaultMaxTokens = 8192;  // the protocol requires max_tokens; clients that leave it out get this
constexpr int64_t kMinThinkingBudget = 1024;

Json text_part(std::string text) {
  Json part = Json::object();
  part.set("type", "text");
  part.set("text", std::move(text));
  return part;
}

MaybeError read_parts(const Json& content, const std::string& field, Json& parts);

// One block of a system prompt, a tool result or what a user says.
MaybeError read_part(const Json& block, const std::string& where, Json& parts) {
  if (!block.is_object()) return invalid_type(where, "an object", block);
  std::string type, text;
  if (auto error = need_string(block, "type", where, type)) return error;
  if (type == "text") {
    if (auto error = need_string(block, "text", where, text)) return error;
    parts.push(text_part(std::move(text)));
  } else if (type == "image") {
    return unsupported(where, fmt::format("{}: images are not supported yet", where));
  } else if (type == "document") {
    const Json* source = present(block, "source");
    const Json* kind = source == nullptr ? nullptr : present(*source, "type");
    if (kind == nullptr || *kind != Json("text"))
      return unsupported(where, fmt::format("{}: documents are supported as plain text only", where));
    if (auto error = need_string(*source, "data", where + ".source", text)) return error;
    parts.push(text_part(std::move(text)));
  } else if (type == "search_result") {
    if (const Json* inner = present(block, "content"))
      if (auto error = read_parts(*inner, where + ".content", parts)) return error;
  } else {
    return unsupported(where + ".type",
                       fmt::format("{}: blocks of type '{}' are not supported", where, type.substr(0, 60)));
  }
  return std::nullopt;
}

// Blocks that are text, each kept apart.
MaybeError read_parts(const Json& content, const std::string& field, Json& parts) {
  if (const std::string* text = content.as_string()) {
    parts.push(text_part(*text));
    return std::nullopt;
  }
  if (!content.is_array()) return invalid_type(field, "a string or a list of blocks", content);
  for (size_t i = 0; i < content.items().size(); ++i)
    if (auto error = read_part(content.items()[i], fmt::format("{}[{}]", field, i), parts)) return error;
  return std::nullopt;
}

MaybeError read_tool_result(const Json& block, const std::string& field, Json& messages) {
  std::string id;
  if (auto error = need_string(block, "tool_use_id", field, id)) return error;
  Json parts = Json::array();
  if (const Json* content = present(block, "content"))
    if (auto error = read_parts(*content, field + ".content", parts)) return error;
  Json message = Json::object();
  message.set("role", "tool");
  message.set("tool_call_id", std::move(id));
  message.set("content", parts.items().empty() ? Json("") : std::move(parts));
  messages.push(std::move(message));
  return std::nullopt;
}

// Results first, as messages of their own; then what the user says.
MaybeError read_user(const Json& content, const std::string& field, Json& messages) {
  Json rest = Json::array();
  if (content.is_array()) {
    for (size_t i = 0; i < content.items().size(); ++i) {
      const Json& block = content.items()[i];
      const std::string where = fmt::format("{}[{}]", field, i);
      const Json* type = block.is_object() ? block.find("type") : nullptr;
      if (type != nullptr && *type == Json("tool_result")) {
        if (auto error = read_tool_result(block, where, messages)) return error;
        continue;
      }
      if (auto error = read_part(block, where, rest)) return error;
    }
    if (rest.items().empty()) return std::nullopt;
  } else if (auto error = read_parts(content, field, rest)) {
    return error;
  }
  Json message = Json::object();
  message.set("role", "user");
  message.set("content", std::move(rest));
  messages.push(std::move(message));
  return std::nullopt;
}

MaybeError read_tool_use(const Json& block, const std::string& field, Json& calls) {
  std::string id, name;
  if (auto error = need_string(block, "id", field, id)) return error;
  if (auto error = need_string(block, "name", field, name)) return error;
  const Json* input = present(block, "input");
  if (input != nullptr && !input->is_object()) return invalid_type(field + ".input", "an object", *input);
  Json function = Json::object();
  function.set("name", std::move(name));
  function.set("arguments", input == nullptr ? "{}" : input->dump_python());
  Json call = Json::object();
  call.set("id", std::move(id));
  call.set("type", "function");
  call.set("function", std::move(function));
  calls.push(std::move(call));
  return std::nullopt;
}

MaybeError read_assistant(const Json& content, const std::string& field, bool last, Json& messages) {
  std::string text, reasoning;
  bool has_text = content.is_string(), thinks = false;
  Json calls = Json::array();
  if (content.is_string()) {
    text = *content.as_string();
  } else if (!content.is_array()) {
    return invalid_type(field, "a string or a list of blocks", content);
  }
  for (size_t i = 0; i < content.items().size(); ++i) {
    const Json& block = content.items()[i];
    const std::string where = fmt::format("{}[{}]", field, i);
    if (!block.is_object()) return invalid_type(where, "an object", block);
    std::string type, piece;
    if (auto error = need_string(block, "type", where, type)) return error;
    if (type == "text") {
      if (auto error = need_string(block, "text", where, piece)) return error;
      text += piece;
      has_text = true;
    } else if (type == "thinking") {
      if (auto error = need_string(block, "thinking", where, piece)) return error;
      reasoning += piece;
      thinks = true;
    } else if (type == "tool_use") {
      if (auto error = read_tool_use(block, where, calls)) return error;
    } else if (type != "redacted_thinking") {
      return unsupported(where + ".type",
                         fmt::format("{}: blocks of type '{}' are not supported here", where, type.substr(0, 60)));
    }
  }
  Json message = Json::object();
  message.set("role", "assistant");
  message.set("content", has_text ? Json(text) : Json());
  if (thinks) message.set("reasoning_content", reasoning);
  const bool called = !calls.items().empty();
  if (called) message.set("tool_calls", std::move(calls));
  if (last && !called) message.set("prefix", true);  // by the protocol, the answer goes on from here
  messages.push(std::move(message));
  return std::nullopt;
}

// A block that an agent puts first and changes with every request would spoil the prefix cache.
bool is_billing_header(const std::string& text) { return text.starts_with("x-anthropic-billing-header:"); }

MaybeError read_system(const Json& body, Json& messages) {
  const Json* system = present(body, "system");
  if (system == nullptr) return std::nullopt;
  Json parts = Json::array();
  if (auto error = read_parts(*system, "system", parts)) return error;
  std::string joined;
  for (size_t i = 0; i < parts.items().size(); ++i) {
    const std::string& text = *parts.items()[i].find("text")->as_string();
    if (i == 0 && is_billing_header(text)) continue;
    if (!joined.empty()) joined += "\n\n";
    joined += text;
  }
  if (joined.empty()) return std::nullopt;
  Json message = Json::object();
  message.set("role", "system");
  message.set("content", std::move(joined));
  messages.push(std::move(message));
  return std::nullopt;
}

MaybeError read_messages(const Json& body, Json& messages) {
  const Json* list = present(body, "messages");
  if (list == nullptr) return missing("messages");
  if (!list->is_array() || list->items().empty())
    return invalid_value("messages", "messages must be a list of at least one message");
  for (size_t i = 0; i < list->items().size(); ++i) {
    const Json& message = list->items()[i];
    const std::string where = fmt::format("messages[{}]", i);
    if (!message.is_object()) return invalid_type(where, "an object", message);
    std::string role;
    if (auto error = need_string(message, "role", where, role)) return error;
    const Json* content = present(message, "content");
    if (content == nullptr) return missing(where + ".content");
    MaybeError error;
    if (role == "user") {
      error = read_user(*content, where + ".content", messages);
    } else if (role == "assistant") {
      error = read_assistant(*content, where + ".content", i + 1 == list->items().size(), messages);
    } else if (role == "system") {
      Json parts = Json::array();
      error = read_parts(*content, where + ".content", parts);
      Json out = Json::object();
      out.set("role", "system");
      out.set("content", std::move(parts));
      messages.push(std::move(out));
    } else {
      error = invalid_value(
          where + ".role", fmt::format("{}.role is '{}', it must be user or assistant", where, role.substr(0, 60)));
    }
    if (error) return error;
  }
  return std::nullopt;
}

MaybeError read_tools(const Json& body, Json& out) {
  const Json* tools = present(body, "tools");
  if (tools == nullptr) return std::nullopt;
  if (!tools->is_array()) return invalid_type("tools", "a list", *tools);
  Json list = Json::array();
  for (size_t i = 0; i < tools->items().size(); ++i) {
    const Json& tool = tools->items()[i];
    const std::string where = fmt::format("tools[{}]", i);
    if (!tool.is_object()) return invalid_type(where, "an object", tool);
    // Tools that run at the vendor (web_search_20250305 ...) do not exist here; agents list them habitually.
    const Json* type = present(tool, "type");
    if (type != nullptr && *type != Json("custom")) continue;
    std::string name;
    if (auto error = need_string(tool, "name", where, name)) return error;
    Json function = Json::object();
    function.set("name", std::move(name));
    if (const Json* description = present(tool, "description")) function.set("description", *description);
    if (const Json* schema = present(tool, "input_schema")) function.set("parameters", *schema);
    Json entry = Json::object();
    entry.set("type", "function");
    entry.set("function", std::move(function));
    list.push(std::move(entry));
  }
  if (!list.items().empty()) out.set("tools", std::move(list));
  return std::nullopt;
}

MaybeError read_tool_choice(const Json& body, Json& out) {
  const Json* choice = present(body, "tool_choice");
  if (choice == nullptr) return std::nullopt;
  if (!choice->is_object()) return invalid_type("tool_choice", "an object", *choice);
  std::string type;
  if (auto error = need_string(*choice, "type", "tool_choice", type)) return error;
  if (type != "auto" && type != "none" && type != "any" && type != "tool")
    return invalid_value(
        "tool_choice.type",
        fmt::format("tool_choice.type is '{}', it must be auto, any, tool or none", type.substr(0, 60)));
  if (type == "auto" || type == "none") out.set("tool_choice", type);  // the others are constraints
  const auto single = bool_field(*choice, "disable_parallel_tool_use");
  if (!single) return single.error();
  if (single->value_or(false)) out.set("parallel_tool_calls", false);
  return std::nullopt;
}

MaybeError read_thinking(const Json& body, Json& out) {
  if (const Json* config = present(body, "output_config"); config != nullptr && config->is_object())
    if (const Json* effort = present(*config, "effort")) out.set("reasoning_effort", *effort);
  const Json* thinking = present(body, "thinking");
  if (thinking == nullptr) return std::nullopt;
  if (!thinking->is_object()) return invalid_type("thinking", "an object", *thinking);
  const auto budget = integer_field(*thinking, "budget_tokens", kMinThinkingBudget, INT32_MAX);
  if (!budget) return budget.error();
  const auto most = integer_field(body, "max_tokens", 1, INT32_MAX);
  if (most && *most && *budget && **budget >= **most)
    return invalid_value("thinking.budget_tokens",
                         fmt::format("thinking.budget_tokens is {}, it must be less than max_tokens, which is {}",
                                     **budget, **most));
  out.set("thinking", *thinking);
  return std::nullopt;
}

}  // namespace

ApiResult<Json> chat_body_from_anthropic(const Json& body) {
  Json out = Json::object();
  Json messages = Json::array();
  for (const auto& step : {read_system, read_messages})
    if (auto error = step(body, messages)) return tl::make_unexpected(std::move(*error));
  out.set("messages", std::move(messages));
  for (const auto& step : {read_tools, read_tool_choice, read_thinking})
    if (auto error = step(body, out)) return tl::make_unexpected(std::move(*error));
  return out;
}

ApiResult<CommonFields> read_anthropic_fields(const Json& body, int32_t vocab) {
  Json common = Json::object();
  for (const char* key : {"temperature", "top_p", "top_k", "min_p", "seed", "stream", "max_tokens", "timings"})
    if (const Json* value = present(body, key)) common.set(key, *value);
  auto fields = read_common(common, vocab);
  if (!fields) return fields;
  GenerationRequest& request = fields->generation;
  if (auto error = read_stops(body, "stop_sequences", request.stop)) return tl::make_unexpected(std::move(*error));
  if (request.max_tokens == 0)
    return tl::make_unexpected(invalid_value("max_tokens", "max_tokens is 0, it must be at least 1"));
  if (!request.max_tokens) request.max_tokens = kDefaultMaxTokens;
  return fields;
}

}  // namespace gannet::server
