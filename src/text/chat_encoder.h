// From a conversation to the text of a prompt, for one model family. Which family is a fact of the checkpoint and
// is chosen once; nothing is guessed from the text of a conversation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/conversation.h"
#include "text/span.h"

namespace gannet {

// Where the parser of the model's output starts: what the prompt leaves open.
enum class OutputStart : uint8_t { content, reasoning };

struct EncodedChat {
  std::vector<TextSpan>
      spans;  // template_owned text only from the encoder; everything of the client's is client_owned
  std::vector<ImageRef> images;  // in prompt order; each stands as one placeholder token in the spans
  OutputStart start = OutputStart::content;

  std::string text() const;  // the spans joined
};

// Immutable; any number of threads may encode with one encoder.
class ChatEncoder {
 public:
  virtual ~ChatEncoder() = default;
  // Name for logs and `/props`: "deepseek_v41", "template", "chatml".
  virtual std::string_view name() const = 0;
  // Refuses what the family cannot express, naming the field ("messages[2].content[0]: ...").
  virtual Result<EncodedChat> encode(const Conversation& conversation) const = 0;
};

// What a checkpoint says about its prompts.
struct ChatModelInfo {
  std::string model_type;                    // config.json: model_type; GGUF: general.architecture
  std::vector<std::string> architectures;    // config.json: architectures
  std::optional<std::string> chat_template;  // tokenizer_config.json, chat_template.jinja or GGUF
  std::string bos_token;                     // spellings, may be empty
  std::string eos_token;
};

// Picks the encoder: `choice` is the user's flag, "auto" or the name of one ("deepseek_v41", "template", "chatml").
// With "auto": deepseek_v41 where the config says so, else the checkpoint's template. A checkpoint with neither is
// refused (Errc::unsupported): ChatML is used only when it is asked for by name, never as a silent guess.
Result<std::unique_ptr<ChatEncoder>> make_chat_encoder(const ChatModelInfo& model,
                                                       std::string_view choice = "auto");

}  // namespace gannet
