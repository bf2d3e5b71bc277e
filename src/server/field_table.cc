#include "server/field_table.h"

#include <fmt/format.h>

#include <array>

#include "server/sampling_fields.h"

namespace gannet::server {
namespace {

constexpr std::array<std::string_view, 19> kWithoutEffect{"user",
                                                          "user_id",
                                                          "safety_identifier",
                                                          "metadata",
                                                          "store",
                                                          "service_tier",
                                                          "verbosity",
                                                          "prediction",
                                                          "prompt_cache_key",
                                                          "moderation",
                                                          "request_id",
                                                          "prompt_cache_retention",
                                                          "cache_prompt",
                                                          "vllm_xargs",
                                                          "prompt_cache_options",
                                                          "truncate",
                                                          "web_search_options",
                                                          "mm_processor_kwargs",
                                                          "spaces_between_special_tokens"};

constexpr std::array<RefusedField, 14> kRefused{{
    {"logit_processors", "code of clients is never run"},
    {"logits_processors", "code of clients is never run"},
    {"bad_words", "is not supported; logit_bias with -100 forbids single tokens"},
    {"prompt_logprobs", "log-probabilities of the prompt are not supported yet"},
    {"return_token_ids", "is not supported yet"},
    {"return_tokens_as_token_ids", "is not supported yet"},
    {"prompt_embeds", "prompts are text or token ids"},
    {"use_beam_search", "beam search is not supported"},
    {"documents", "the model's template is given no documents"},
    {"chat_template", "templates come from the model, not from requests"},
    {"audio", "there is no audio output"},
    {"kv_transfer_params", "this server is not part of a disaggregated group"},
    {"lora", "adapters are not supported yet"},
    {"lora_request", "adapters are not supported yet"},
}};

constexpr std::array<std::string_view, 10> kConstraints{
    "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs",
    "regex",       "ebnf",         "json_schema",   "grammar",        "structural_tag"};

bool asks_for_something(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return false;
    case Json::Kind::boolean:
      return *value.as_bool();
    case Json::Kind::array:
      return !value.items().empty();
    case Json::Kind::object:
      return !value.members().empty();
    case Json::Kind::string:
      return !value.as_string()->empty();
    case Json::Kind::number:
      return true;
  }
  return true;
}

ApiError not_yet(std::string field) {
  std::string message = fmt::format("{}: constrained output is not supported yet", field);
  return unsupported(std::move(field), std::move(message));
}

// A format object whose type is something else than plain text.
std::optional<ApiError> refuse_format(const Json* format, const char* field) {
  if (format == nullptr) return std::nullopt;
  if (!format->is_object()) return invalid_type(field, "an object", *format);
  std::string type;
  if (auto error = need_string(*format, "type", field, type)) return error;
  if (type == "text") return std::nullopt;
  return not_yet(field);
}

}  // namespace

std::span<const std::string_view> fields_without_effect() { return kWithoutEffect; }
std::span<const RefusedField> refused_fields() { return kRefused; }

std::optional<ApiError> refuse_fields(const Json& body) {
  for (const RefusedField& field : kRefused)
    if (const Json* value = body.find(field.name); value != nullptr && asks_for_something(*value))
      return unsupported(std::string(field.name), fmt::format("{}: {}", field.name, field.why));
  if (const Json* modalities = present(body, "modalities"); modalities != nullptr)
    for (const Json& item : modalities->items())
      if (item != Json("text"))
        return unsupported("modalities", fmt::format("modalities: only text is supported, got {}", item.dump()));
  return std::nullopt;
}

std::optional<ApiError> refuse_constraints(const Json& body) {
  for (const std::string_view key : kConstraints)
    if (const Json* value = present(body, key); value != nullptr && *value != Json(false))
      return not_yet(std::string(key));
  if (auto error = refuse_format(present(body, "response_format"), "response_format")) return error;
  if (const Json* text = present(body, "text"); text != nullptr && text->is_object())
    if (auto error = refuse_format(present(*text, "format"), "text.format")) return error;
  if (const Json* config = present(body, "output_config"); config != nullptr && config->is_object())
    if (auto error = refuse_format(present(*config, "format"), "output_config.format")) return error;
  // Every spelling of "the answer must be a call": only a grammar can keep that promise.
  const Json* choice = present(body, "tool_choice");
  if (choice == nullptr) choice = present(body, "function_call");
  if (choice == nullptr) return std::nullopt;
  const std::string* name = choice->as_string();
  if (name == nullptr && choice->is_object())
    if (const Json* type = present(*choice, "type")) name = type->as_string();
  const bool forced = choice->is_object() ? name == nullptr || (*name != "auto" && *name != "none")
                                          : name != nullptr && *name == "required";
  if (forced)
    return unsupported("tool_choice",
                       fmt::format("tool_choice: {} needs constrained output, which is not supported yet; "
                                   "auto and none are",
                                   choice->dump().substr(0, 100)));
  return std::nullopt;
}

}  // namespace gannet::server
