#include "text/chat_template.h"

#include <fmt/format.h>

#include <ctime>
#include <random>

#include "text/span_writer.h"
#include "text/template.h"

namespace gannet {
namespace {

constexpr TextSpan::Owner kOwn = TextSpan::Owner::template_owned;

// 128 random bits: stands where a prefix to be continued ends, and cannot be in a client's text.
std::string random_mark() {
  std::random_device device;
  std::string mark = "\x01";
  for (int i = 0; i < 4; ++i) mark += fmt::format("{:08x}", static_cast<uint32_t>(device()));
  return mark + "\x01";
}

Json call_json(const ChatToolCall& call) {
  Json function = Json::object();
  function.set("name", call.name_space.empty() ? call.name : call.name_space + "::" + call.name);
  auto arguments = Json::parse(call.arguments);
  // Templates write arguments with tojson: they want the object, not its text.
  function.set("arguments", arguments && arguments->is_object() ? std::move(*arguments) : Json(call.arguments));
  Json out = Json::object();
  out.set("id", call.id);
  out.set("type", "function");
  out.set("function", std::move(function));
  return out;
}

// Templates of text models take a string; a list only where there is an image to place.
Json content_json(const ChatMessage& message, std::vector<ImageRef>& images, std::string_view suffix) {
  bool has_image = false;
  for (const ContentBlock& block : message.blocks) has_image = has_image || block.kind == ContentBlock::Kind::image;
  if (!has_image) {
    if (message.content_absent && suffix.empty()) return Json();
    return Json(joined_text(message.blocks, "\n") + std::string(suffix));
  }
  Json parts = Json::array();
  for (const ContentBlock& block : message.blocks) {
    Json part = Json::object();
    part.set("type", block.kind == ContentBlock::Kind::image ? "image" : "text");
    if (block.kind == ContentBlock::Kind::image)
      images.push_back(block.image);
    else
      part.set("text", block.text);
    parts.push(std::move(part));
  }
  return parts;
}

Json message_json(const ChatMessage& message, std::vector<ImageRef>& images, std::string_view suffix) {
  Json out = Json::object();
  out.set("role", role_name(message.role));
  out.set("content", content_json(message, images, suffix));
  if (!message.name.empty()) out.set("name", message.name);
  if (message.reasoning) out.set("reasoning_content", *message.reasoning);
  if (!message.tool_calls.empty()) {
    Json calls = Json::array();
    for (const ChatToolCall& call : message.tool_calls) calls.push(call_json(call));
    out.set("tool_calls", std::move(calls));
  }
  if (message.role == Role::tool) out.set("tool_call_id", message.tool_call_id);
  return out;
}

// Cuts the spans where the mark stands, which must be once.
Status cut_at(std::vector<TextSpan>& spans, std::string_view mark) {
  for (size_t i = 0; i < spans.size(); ++i) {
    const size_t at = spans[i].text.find(mark);
    if (at == std::string::npos) continue;
    spans[i].text.erase(at);
    spans.resize(i + 1);
    return ok();
  }
  return Error{Errc::unsupported,
               "the model's chat template does not show the last message in a way that can be continued"};
}

bool ends_in_reasoning(const std::vector<TextSpan>& spans) {
  if (spans.empty() || spans.back().owner != kOwn) return false;
  std::string_view text = spans.back().text;
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return text.ends_with("<think>");
}

class TemplateEncoder final : public ChatEncoder {
 public:
  TemplateEncoder(Template chat, const ChatModelInfo& model, std::string_view name)
      : template_(std::move(chat)), bos_(model.bos_token), eos_(model.eos_token), name_(name) {}

  std::string_view name() const override { return name_; }

  Result<EncodedChat> encode(const Conversation& conversation) const override {
    if (conversation.messages.empty()) return Error{Errc::bad_request, "messages: holds no message"};
    EncodedChat out;
    const bool open = conversation.messages.back().open;
    const std::string mark = open ? random_mark() : std::string();
    Json messages = Json::array();
    for (const ChatMessage& message : conversation.messages) {
      GANNET_TRY(check(message));
      messages.push(message_json(message, out.images, &message == &conversation.messages.back() ? mark : ""));
    }
    if (!out.images.empty() && !template_.mentions("image"))
      return Error{Errc::bad_request, fmt::format("{}: the model takes no images", out.images[0].field)};
    GANNET_ASSIGN(out.spans,
                  template_.render(variables(conversation, std::move(messages), !open), std::time(nullptr)));
    if (open) GANNET_TRY(cut_at(out.spans, mark));
    if (ends_in_reasoning(out.spans)) out.start = OutputStart::reasoning;
    return out;
  }

 private:
  static Status check(const ChatMessage& message) {
    if (message.role == Role::latest_reminder)
      return Error{Errc::bad_request, fmt::format("{}.role: the model knows no latest_reminder", message.field)};
    if (message.task != ChatTask::none)
      return Error{Errc::bad_request, fmt::format("{}.task: the model knows no tasks", message.field)};
    return ok();
  }

  std::vector<TemplateVariable> variables(const Conversation& conversation, Json messages,
                                          bool add_generation_prompt) const {
    Json tools = conversation.tools.empty() ? Json() : Json::array();
    for (const Json& tool : conversation.tools) tools.push(tool);
    std::vector<TemplateVariable> out{{"messages", std::move(messages)},
                                      {"tools", std::move(tools)},
                                      {"documents", Json()},
                                      {"add_generation_prompt", Json(add_generation_prompt)},
                                      {"bos_token", Json(bos_), kOwn},
                                      {"eos_token", Json(eos_), kOwn}};
    const auto add = [&](std::string_view key, Json value) {  // the first of a name counts
      for (const TemplateVariable& known : out)
        if (known.name == key) return;
      out.push_back({std::string(key), std::move(value)});
    };
    for (const auto& [key, value] : conversation.template_kwargs.members()) add(key, value);
    const Thinking& thinking = conversation.thinking;
    if (thinking.on_stated || !thinking.on) {
      add("enable_thinking", Json(thinking.on));
      add("thinking", Json(thinking.on));
    }
    if (!thinking.effort_stated.empty()) add("reasoning_effort", Json(thinking.effort_stated));
    return out;
  }

  Template template_;
  std::string bos_, eos_, name_;
};

}  // namespace

std::string_view chatml_template() {
  return "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + (message.content or '') + "
         "'<|im_end|>\\n' }}"
         "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
}

Result<std::unique_ptr<ChatEncoder>> make_template_encoder(const ChatModelInfo& model, std::string_view source,
                                                           std::string_view name) {
  GANNET_ASSIGN(Template chat, Template::parse(source));
  return std::unique_ptr<ChatEncoder>(std::make_unique<TemplateEncoder>(std::move(chat), model, name));
}

}  // namespace gannet
