#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"
#include "text/chat_openai.h"

namespace gannet {
namespace {

Error bad(std::string_view field, std::string_view what) {
  return Error{Errc::bad_request, fmt::format("{}: {}", field, what)};
}

std::string_view kind_name(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return "a boolean";
    case Json::Kind::number:
      return "a number";
    case Json::Kind::string:
      return "a string";
    case Json::Kind::array:
      return "an array";
    case Json::Kind::object:
      return "an object";
  }
  return "unknown";
}

// Client text in an error message: short, so that a megabyte does not come back.
std::string quoted(std::string_view text) {
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", utf8_prefix(text, kLongest));
}

// A member that must be a string where it is present and not null; empty pointer when absent.
Result<const std::string*> optional_string(const Json& object, std::string_view key, std::string_view field) {
  const Json* value = object.find(key);
  if (value == nullptr || value->is_null()) return static_cast<const std::string*>(nullptr);
  if (!value->is_string())
    return bad(fmt::format("{}.{}", field, key), fmt::format("expected a string, got {}", kind_name(*value)));
  return value->as_string();
}

Result<const std::string*> required_string(const Json& object, std::string_view key, std::string_view field) {
  GANNET_ASSIGN(const std::string* text, optional_string(object, key, field));
  if (text == nullptr) return bad(fmt::format("{}.{}", field, key), "is required");
  return text;
}

// The URL of an image part: {"image_url": {"url", "detail"}}, {"image_url": "..."} or Anthropic's
// {"source": {"type": "base64"|"url", ...}}.
Result<ImageRef> image_of(const Json& part, std::string_view field) {
  ImageRef image;
  image.field = std::string(field);
  if (const Json* source = part.find("source"); source != nullptr && source->is_object()) {
    const std::string where = fmt::format("{}.source", field);
    GANNET_ASSIGN(const std::string* type, required_string(*source, "type", where));
    if (*type == "base64") {
      GANNET_ASSIGN(const std::string* media, required_string(*source, "media_type", where));
      GANNET_ASSIGN(const std::string* data, required_string(*source, "data", where));
      image.url = fmt::format("data:{};base64,{}", *media, *data);
    } else if (*type == "url") {
      GANNET_ASSIGN(const std::string* url, required_string(*source, "url", where));
      image.url = *url;
    } else {
      return bad(where + ".type", fmt::format("{} is neither 'base64' nor 'url'", quoted(*type)));
    }
    return image;
  }
  const Json* url = part.find("image_url");
  if (url == nullptr) url = part.find("image");
  if (url == nullptr) return bad(fmt::format("{}.image_url", field), "is required");
  const std::string where = fmt::format("{}.image_url", field);
  const Json* holder = &part;
  if (url->is_object()) {
    holder = url;
    GANNET_ASSIGN(const std::string* text, required_string(*url, "url", where));
    image.url = *text;
  } else if (const std::string* text = url->as_string()) {
    image.url = *text;
  } else {
    return bad(where, fmt::format("expected an object or a string, got {}", kind_name(*url)));
  }
  GANNET_ASSIGN(const std::string* detail, optional_string(*holder, "detail", where));
  if (detail != nullptr) {
    if (*detail != "low" && *detail != "high" && *detail != "auto" && *detail != "original")
      return bad(fmt::format("{}.detail", where),
                 fmt::format("{} is none of low, high, auto, original", quoted(*detail)));
    image.detail = *detail;
  }
  return image;
}

Result<ContentBlock> block_of(const Json& part, Role role, std::string_view field) {
  if (!part.is_object()) return bad(field, fmt::format("expected an object, got {}", kind_name(part)));
  GANNET_ASSIGN(const std::string* type, required_string(part, "type", field));
  if (*type == "text" || *type == "input_text" || *type == "output_text") {
    GANNET_ASSIGN(const std::string* text, required_string(part, "text", field));
    return ContentBlock::of_text(*text);
  }
  if (*type == "refusal") {
    GANNET_ASSIGN(const std::string* text, required_string(part, "refusal", field));
    return ContentBlock::of_text(*text);
  }
  if (*type == "image_url" || *type == "image" || *type == "input_image") {
    if (role == Role::assistant) return bad(field, "an assistant message cannot hold an image");
    GANNET_ASSIGN(ImageRef image, image_of(part, field));
    return ContentBlock::of_image(std::move(image));
  }
  // Results of tools come from programs and are kept whatever they hold; what people write is checked.
  if (role == Role::tool) return ContentBlock::of_text(fmt::format("[Unsupported {}]", *type));
  return bad(fmt::format("{}.type", field), fmt::format("content of type {} is not supported", quoted(*type)));
}

Status read_content(const Json& message, ChatMessage& out) {
  const Json* content = message.find("content");
  if (content == nullptr || content->is_null()) {
    if (out.role != Role::assistant) return bad(out.field + ".content", "is required");
    out.content_absent = true;
    return ok();
  }
  if (const std::string* text = content->as_string()) {
    out.blocks.push_back(ContentBlock::of_text(*text));
    return ok();
  }
  if (!content->is_array())
    return bad(out.field + ".content", fmt::format("expected a string or an array, got {}", kind_name(*content)));
  for (size_t i = 0; i < content->items().size(); ++i) {
    GANNET_ASSIGN(ContentBlock block,
                  block_of(content->items()[i], out.role, fmt::format("{}.content[{}]", out.field, i)));
    out.blocks.push_back(std::move(block));
  }
  return ok();
}

// "ns::name" is a name in a namespace; the field `namespace` says the same apart from it.
Status split_namespace(ChatToolCall& call, std::string_view field) {
  const size_t at = call.name.find("::");
  if (at == std::string::npos) return ok();
  if (call.name.find("::", at + 1) != std::string::npos)
    return bad(fmt::format("{}.name", field), fmt::format("{} holds '::' more than once", quoted(call.name)));
  const std::string name_space = call.name.substr(0, at);
  if (!call.name_space.empty() && call.name_space != name_space)
    return bad(fmt::format("{}.name", field),
               fmt::format("{} is in another namespace than {}", quoted(call.name), quoted(call.name_space)));
  call.name_space = name_space;
  call.name.erase(0, at + 2);
  return ok();
}

Result<ChatToolCall> tool_call_of(const Json& json, std::string_view field) {
  if (!json.is_object()) return bad(field, fmt::format("expected an object, got {}", kind_name(json)));
  ChatToolCall call;
  GANNET_ASSIGN(const std::string* id, optional_string(json, "id", field));
  if (id != nullptr) call.id = *id;
  const Json* function = json.find("function");
  const std::string where = fmt::format("{}.function", field);
  if (function == nullptr || !function->is_object()) return bad(where, "expected an object");
  GANNET_ASSIGN(const std::string* name, required_string(*function, "name", where));
  call.name = *name;
  for (const Json* holder : {&json, function}) {
    GANNET_ASSIGN(const std::string* name_space, optional_string(*holder, "namespace", field));
    if (name_space == nullptr) continue;
    if (name_space->find("::") != std::string::npos)
      return bad(fmt::format("{}.namespace", field), "must not hold '::'");
    call.name_space = *name_space;
  }
  GANNET_TRY(split_namespace(call, where));
  const Json* arguments = function->find("arguments");
  if (arguments == nullptr || arguments->is_null())
    call.arguments = "{}";
  else if (const std::string* text = arguments->as_string())
    call.arguments = *text;
  else if (arguments->is_object())
    call.arguments = arguments->dump();
  else
    return bad(where + ".arguments", fmt::format("expected a string or an object, got {}", kind_name(*arguments)));
  return call;
}

Status read_tool_calls(const Json& message, ChatMessage& out) {
  const Json* calls = message.find("tool_calls");
  if (calls == nullptr || calls->is_null()) return ok();
  if (!calls->is_array())
    return bad(out.field + ".tool_calls", fmt::format("expected an array, got {}", kind_name(*calls)));
  for (size_t i = 0; i < calls->items().size(); ++i) {
    GANNET_ASSIGN(ChatToolCall call,
                  tool_call_of(calls->items()[i], fmt::format("{}.tool_calls[{}]", out.field, i)));
    out.tool_calls.push_back(std::move(call));
  }
  return ok();
}

Status read_assistant(const Json& message, ChatMessage& out) {
  GANNET_ASSIGN(const std::string* reasoning, optional_string(message, "reasoning_content", out.field));
  if (reasoning == nullptr) {
    GANNET_ASSIGN(reasoning, optional_string(message, "reasoning", out.field));
  }
  if (reasoning != nullptr) out.reasoning = *reasoning;
  GANNET_TRY(read_tool_calls(message, out));
  // The form before tool_calls: one call, no id.
  if (const Json* legacy = message.find("function_call");
      legacy != nullptr && legacy->is_object() && out.tool_calls.empty()) {
    Json wrapped = Json::object();
    wrapped.set("function", *legacy);
    GANNET_ASSIGN(ChatToolCall call, tool_call_of(wrapped, out.field + ".function_call"));
    out.tool_calls.push_back(std::move(call));
  }
  if (const Json* prefix = message.find("prefix"); prefix != nullptr && !prefix->is_null()) {
    if (!prefix->is_bool())
      return bad(out.field + ".prefix", fmt::format("expected a boolean, got {}", kind_name(*prefix)));
    out.open = *prefix->as_bool();
  }
  return ok();
}

Status read_task(const Json& message, ChatMessage& out) {
  GANNET_ASSIGN(const std::string* name, optional_string(message, "task", out.field));
  if (name == nullptr) return ok();
  constexpr std::array<std::pair<std::string_view, ChatTask>, 6> kTasks{{{"action", ChatTask::action},
                                                                         {"query", ChatTask::query},
                                                                         {"authority", ChatTask::authority},
                                                                         {"domain", ChatTask::domain},
                                                                         {"title", ChatTask::title},
                                                                         {"read_url", ChatTask::read_url}}};
  for (const auto& [spelling, task] : kTasks)
    if (spelling == *name) out.task = task;
  if (out.task == ChatTask::none)
    return bad(out.field + ".task",
               fmt::format("{} is none of action, query, authority, domain, title, read_url", quoted(*name)));
  return ok();
}

// What a role name stands for; `developer` depends on what came before.
Result<Role> role_of(const std::string& name, bool leading, const ChatDefaults& defaults, std::string_view field) {
  if (name == "system") return Role::system;
  if (name == "user") return Role::user;
  if (name == "assistant") return Role::assistant;
  if (name == "tool" || name == "function") return Role::tool;
  if (name == "latest_reminder") return Role::latest_reminder;
  if (name == "developer") return leading || defaults.late_developer_is_system ? Role::system : Role::user;
  return bad(fmt::format("{}.role", field),
             fmt::format("{} is none of system, developer, user, assistant, tool, latest_reminder", quoted(name)));
}

Result<ChatMessage> message_of(const Json& json, bool leading, const ChatDefaults& defaults, std::string field) {
  if (!json.is_object()) return bad(field, fmt::format("expected an object, got {}", kind_name(json)));
  ChatMessage message;
  message.field = std::move(field);
  GANNET_ASSIGN(const std::string* role, required_string(json, "role", message.field));
  GANNET_ASSIGN(message.role, role_of(*role, leading, defaults, message.field));
  GANNET_ASSIGN(const std::string* name, optional_string(json, "name", message.field));
  if (name != nullptr) message.name = *name;
  GANNET_TRY(read_content(json, message));
  if (message.role == Role::assistant) GANNET_TRY(read_assistant(json, message));
  if (message.role == Role::user) GANNET_TRY(read_task(json, message));
  if (message.role == Role::tool) {
    GANNET_ASSIGN(const std::string* id, optional_string(json, "tool_call_id", message.field));
    if (id == nullptr && *role == "tool") return bad(message.field + ".tool_call_id", "is required");
    if (id != nullptr) message.tool_call_id = *id;
  }
  return message;
}

// A leading run of system and developer messages is one system message, joined by an empty line. A run of system
// messages alone stays as it is: the release gives each its own turn.
void join_leading_developer(std::vector<ChatMessage>& messages, size_t n_leading) {
  if (n_leading < 2) return;
  ChatMessage& first = messages[0];
  for (size_t i = 1; i < n_leading; ++i) {
    if (!first.blocks.empty() && !messages[i].blocks.empty()) {
      ContentBlock& end = first.blocks.back();
      ContentBlock& begin = messages[i].blocks.front();
      if (end.kind == ContentBlock::Kind::text && begin.kind == ContentBlock::Kind::text) {
        end.text += "\n\n" + begin.text;
        messages[i].blocks.erase(messages[i].blocks.begin());
      }
    }
    std::move(messages[i].blocks.begin(), messages[i].blocks.end(), std::back_inserter(first.blocks));
  }
  messages.erase(messages.begin() + 1, messages.begin() + static_cast<std::ptrdiff_t>(n_leading));
}

Status check_order(std::vector<ChatMessage>& messages, bool allow_trailing_assistant) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    const bool last = i + 1 == messages.size();
    if (message.open && !last)
      return bad(message.field + ".prefix", "only the last message can be a prefix to continue");
    // Both would be one turn with what comes before, and the release keeps only the first message's task there.
    const bool joined = i > 0 && (messages[i - 1].role == Role::tool ||
                                  (messages[i - 1].role == Role::user && messages[i - 1].task == ChatTask::none));
    if (message.task != ChatTask::none && joined)
      return bad(message.field + ".task", "a task must not directly follow a tool or user message");
    if (last && message.role == Role::assistant && !message.open) {
      if (!allow_trailing_assistant)
        return bad(message.field,
                   "the last message must be of a user or a tool, or an assistant message with \"prefix\": true");
      messages.back().open = true;
    }
  }
  return ok();
}

}  // namespace

Result<std::vector<ChatMessage>> messages_from_openai(const Json& json, const ChatDefaults& defaults,
                                                      std::string_view field, bool allow_trailing_assistant) {
  if (!json.is_array()) return bad(field, fmt::format("expected an array, got {}", kind_name(json)));
  if (json.items().empty()) return bad(field, "holds no message");
  std::vector<ChatMessage> messages;
  messages.reserve(json.items().size());
  size_t n_leading = 0;
  bool developer = false;
  for (size_t i = 0; i < json.items().size(); ++i) {
    const Json& item = json.items()[i];
    const bool leading = n_leading == i;
    GANNET_ASSIGN(ChatMessage message, message_of(item, leading, defaults, fmt::format("{}[{}]", field, i)));
    if (leading && message.role == Role::system) {
      ++n_leading;
      developer = developer || *item.find("role") == Json("developer");
    }
    messages.push_back(std::move(message));
  }
  GANNET_TRY(check_order(messages, allow_trailing_assistant));
  if (developer) join_leading_developer(messages, n_leading);
  return messages;
}

}  // namespace gannet
