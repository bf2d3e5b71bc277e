#include "text/chat_encoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/chat_deepseek_v41.h"
#include "text/chat_template.h"

namespace gannet {
namespace {

bool is_deepseek_v41(const ChatModelInfo& model) {
  const auto named = [](std::string_view name) {
    return name == "deepseek_v41" || name == "deepseek_v4_1" || name == "deepseek41" ||
           name.starts_with("DeepseekV41");
  };
  return named(model.model_type) || std::ranges::any_of(model.architectures, named);
}

}  // namespace

std::string EncodedChat::text() const {
  std::string out;
  for (const TextSpan& span : spans) out += span.text;
  return out;
}

Result<std::unique_ptr<ChatEncoder>> make_chat_encoder(const ChatModelInfo& model, std::string_view choice) {
  if (choice == "deepseek_v41" || (choice == "auto" && is_deepseek_v41(model))) return make_deepseek_v41_encoder();
  if (choice == "chatml") return make_template_encoder(model, chatml_template(), "chatml");
  if (choice != "auto" && choice != "template")
    return Error{Errc::bad_request,
                 fmt::format("chat format '{}' is none of auto, template, deepseek_v41, chatml", choice)};
  if (model.chat_template) return make_template_encoder(model, *model.chat_template, "template");
  return Error{
      Errc::unsupported,
      fmt::format(
          "the model (type '{}') has no chat template; choose a chat format by name, or use plain completions",
          model.model_type)};
}

}  // namespace gannet
