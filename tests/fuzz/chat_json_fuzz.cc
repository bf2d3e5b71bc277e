// Bytes as the JSON of a chat request, through the adapter and both kinds of encoder. However it ends: images and
// placeholders agree, and the client writes no control token.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/chat_deepseek_v41.h"
#include "text/chat_openai.h"
#include "text/chat_template.h"

namespace {

using namespace gannet;

std::unique_ptr<ChatEncoder> template_encoder() {
  ChatModelInfo model;
  model.bos_token = "<s>";
  // what templates do: merge, trim, cut, count, dump
  auto encoder = make_template_encoder(
      model,
      "{{ bos_token }}{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ '<|' + "
      "m.role + '|>' }}"
      "{% if m.content is string %}{{ m.content.split('</think>')[-1] | trim }}{% elif m.content %}{% for p in "
      "m.content %}"
      "{{ '<image>' if p.type == 'image' else p.text }}{% endfor %}{% endif %}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name ~ (c.function.arguments | tojson(indent=2)) }}{% endfor %}{% endfor %}",
      "template");
  GANNET_CHECK(encoder.has_value(), "the template does not parse");
  return std::move(*encoder);
}

size_t count(std::string_view text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto v41 = make_deepseek_v41_encoder();
  static const auto other = template_encoder();
  const auto json = Json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!json) return 0;
  const auto conversation = conversation_from_openai(*json);
  if (!conversation) {
    GANNET_CHECK(!conversation.error().message.empty(), "an error without words");
    return 0;
  }
  if (const auto chat = other->encode(*conversation)) GANNET_CHECK(!chat->spans.empty(), "an empty prompt");
  const auto chat = v41->encode(*conversation);
  if (!chat) return 0;
  size_t n_images = 0, n_eos = 0, n_assistants = 0;
  for (const TextSpan& span : chat->spans) {
    GANNET_CHECK(!span.text.empty(), "an empty span");
    if (span.owner != TextSpan::Owner::template_owned) continue;
    n_images += count(span.text, deepseek_v41::kImage);
    n_eos += count(span.text, deepseek_v41::kEos);
  }
  for (const ChatMessage& message : conversation->messages)
    n_assistants += message.role == Role::assistant && !message.open;
  GANNET_CHECK(n_images == chat->images.size(), "{} placeholders for {} images", n_images, chat->images.size());
  GANNET_CHECK(n_eos == n_assistants, "{} ends for {} assistant messages", n_eos, n_assistants);
  return 0;
}
