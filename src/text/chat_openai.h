// The only file of text/ that knows a client protocol: OpenAI-style chat requests to a Conversation.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/conversation.h"

namespace gannet {

struct ChatDefaults {
  bool thinking = true;  // when the request says nothing
  int32_t effort = 75;
  // A `developer` message after the leading system messages becomes a user turn, or a system turn where this is
  // set.
  bool late_developer_is_system = false;
  bool show_response_format = true;  // put the schema of response_format into the prompt
};

// Reads `messages`, `tools`, `functions`, `tool_choice`, `response_format`, `reasoning_effort`, `thinking`,
// `chat_template_kwargs`, `continue_final_message` and `add_generation_prompt` of a /v1/chat/completions body;
// other fields are somebody else's. Refuses (Errc::bad_request, naming the field: `messages[3].content[0].type`)
// what does not have the documented type, an unknown role or content type, an unknown effort, a final assistant
// message that is not marked as a prefix, an empty message list.
Result<Conversation> conversation_from_openai(const Json& request, const ChatDefaults& defaults = {});

// The messages array alone, for callers that hold no whole request (`gannet run`). `field` is how errors name it.
// With `allow_trailing_assistant` a final assistant message is a prefix to continue (Anthropic's rule).
Result<std::vector<ChatMessage>> messages_from_openai(const Json& messages, const ChatDefaults& defaults,
                                                      std::string_view field = "messages",
                                                      bool allow_trailing_assistant = false);

}  // namespace gannet
