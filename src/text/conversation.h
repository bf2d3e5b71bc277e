// A conversation as Gannet sees it: what the client said, in no protocol's shape and no model's format. Protocol
// adapters (chat_openai.h) build it; chat encoders (chat_encoder.h) turn it into a prompt. Values only, no thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace gannet {

// `developer` does not exist here: adapters map it to system or user.
enum class Role : uint8_t { system, user, assistant, tool, latest_reminder };

// Short completions that DeepSeek's models are trained for; stated on a user message.
enum class ChatTask : uint8_t { none, action, query, authority, domain, title, read_url };

// An image as the client named it; fetching, decoding and limits are the vision front end's business.
struct ImageRef {
  std::string url;     // data: or http(s) URL
  std::string detail;  // "low", "high", "auto", or empty
  std::string field;   // where the client put it, for errors: "messages[3].content[0]"

  bool operator==(const ImageRef&) const = default;
};

struct ContentBlock {
  enum class Kind : uint8_t { text, image } kind = Kind::text;
  std::string text;  // of kind text
  ImageRef image;    // of kind image

  static ContentBlock of_text(std::string text) { return {Kind::text, std::move(text), {}}; }
  static ContentBlock of_image(ImageRef image) { return {Kind::image, {}, std::move(image)}; }
  bool operator==(const ContentBlock&) const = default;
};

// A call the assistant made earlier. `arguments` is the client's text, usually a JSON object, never checked.
struct ChatToolCall {
  std::string id;
  std::string name_space;  // empty: none
  std::string name;
  std::string arguments;

  bool operator==(const ChatToolCall&) const = default;
};

struct ChatMessage {
  Role role = Role::user;
  std::vector<ContentBlock> blocks;
  bool content_absent = false;           // assistant: content was null or missing, which is not the empty string
  std::optional<std::string> reasoning;  // assistant
  std::vector<ChatToolCall> tool_calls;  // assistant
  std::string tool_call_id;              // tool: the call it answers
  std::string name;                      // optional name of the speaker; templates may show it
  ChatTask task = ChatTask::none;        // user
  bool open = false;                     // last assistant message: a prefix that the model goes on with
  std::string field;                     // where the client put it, for errors: "messages[3]"

  // Nothing to show: no image, and no text. Two empty texts are not nothing: they are shown with a break between.
  bool blocks_empty() const;
  bool operator==(const ChatMessage&) const = default;
};

struct Thinking {
  bool on = true;
  int32_t effort = 75;       // 1..100
  bool drop_earlier = true;  // leave out reasoning before the last user turn (never when tools are declared)
  std::optional<int64_t> budget_tokens;  // hard limit for the reasoning span, enforced by the sampler
  // What the client stated, because templates of other models tell "false" from "not said".
  bool on_stated = false;
  std::string effort_stated;  // its spelling: "high", "75"; empty when not said

  bool operator==(const Thinking&) const = default;
};

struct ToolChoice {
  enum class Kind : uint8_t { automatic, none, required, named } kind = Kind::automatic;
  std::string name;  // of kind named

  bool operator==(const ToolChoice&) const = default;
};

struct Conversation {
  std::vector<ChatMessage> messages;
  // The client's tool objects whole ({"type":"function","function":{...}}), in its order and spelling. Already
  // filtered by tool_choice: empty for `none`, the one tool for `named`.
  std::vector<Json> tools;
  ToolChoice tool_choice;
  // What the answer must look like, as it is shown to the model: a JSON Schema, or {"type": "json_object"}.
  std::optional<Json> response_format;
  Thinking thinking;
  // Extra variables of a template (`chat_template_kwargs`), an object.
  Json template_kwargs = Json::object();

  bool operator==(const Conversation&) const = default;
};

// The name as prompts and templates spell it ("system").
std::string_view role_name(Role role);

// Text of all text blocks, joined by `separator`.
std::string joined_text(const std::vector<ContentBlock>& blocks, std::string_view separator);

}  // namespace gannet
