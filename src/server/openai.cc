#include "server/openai.h"

#include <fmt/format.h>

#include "server/field_table.h"
#include "server/openai_reply.h"
#include "text/chat_openai.h"

namespace gannet::server {
namespace {

constexpr int32_t kMaxChoices = 128;  // that run for one request
constexpr int32_t kMaxBestOf = 20;
constexpr int32_t kDefaultCompletionTokens = 16;  // the API's default

OpenAiReplyOptions reply_options(const CommonFields& fields, bool chat) {
  OpenAiReplyOptions options;
  options.chat = chat;
  options.stream = fields.stream;
  options.include_usage = fields.include_usage;
  options.timings = fields.timings;
  options.logprobs = fields.generation.sampling.top_logprobs >= 0;
  options.n_shown = options.best_of = fields.generation.n;
  options.n_choices = fields.generation.n * static_cast<int32_t>(fields.generation.prompts.size());
  return options;
}

std::optional<ApiError> read_chat_logprobs(const Json& body, sample::SamplingParams& sampling) {
  const auto logprobs = bool_field(body, "logprobs");
  if (!logprobs) return logprobs.error();
  const auto top = integer_field(body, "top_logprobs", 0, sample::kMaxTopLogprobs);
  if (!top) return top.error();
  if (*top && !logprobs->value_or(false)) return invalid_value("top_logprobs", "top_logprobs needs logprobs: true");
  if (logprobs->value_or(false)) sampling.top_logprobs = static_cast<int32_t>(top->value_or(0));
  return std::nullopt;
}

// max_tokens of at least 1, unless nothing but the prompt is asked for.
std::optional<ApiError> check_max_tokens(const GenerationRequest& request, const Json& body, bool echo) {
  if (request.max_tokens != 0 || echo) return std::nullopt;
  const char* key = present(body, "max_completion_tokens") != nullptr ? "max_completion_tokens" : "max_tokens";
  return invalid_value(key, fmt::format("{} is 0, it must be at least 1", key));
}

// Keeps the last k tokens of each prompt; -1: as many as leave room for one more.
std::optional<ApiError> truncate(const RouteContext& context, const Json& body, GenerationRequest& request) {
  const auto field = integer_field(body, "truncate_prompt_tokens", -1, INT32_MAX);
  if (!field) return field.error();
  if (!*field) return std::nullopt;
  if (**field == 0)
    return invalid_value("truncate_prompt_tokens", "truncate_prompt_tokens is 0, it must be -1 or positive");
  const auto keep = static_cast<size_t>(**field < 0 ? context.service.max_context() - 1 : **field);
  for (auto& prompt : request.prompts)
    if (prompt.size() > keep) prompt.erase(prompt.begin(), prompt.end() - static_cast<std::ptrdiff_t>(keep));
  return std::nullopt;
}

// ---- /v1/completions ----

std::optional<ApiError> read_ids(const RouteContext& context, const Json& list, std::vector<int32_t>& ids) {
  const int32_t vocab = context.model.model->info().vocab;
  for (const Json& item : list.items()) {
    const auto id = item.as_int();
    if (!id || *id < 0 || *id >= vocab)
      return invalid_value("prompt", fmt::format("prompt has token id {}, the vocabulary is 0..{}",
                                                 item.dump().substr(0, 40), vocab - 1));
    ids.push_back(static_cast<int32_t>(*id));
  }
  return std::nullopt;
}

// PREFIX and SUFFIX around the tokens that a model was trained to fill a hole with.
std::optional<ApiError> fill_in_middle(const RouteContext& context, std::string_view prefix,
                                       std::string_view suffix, std::vector<int32_t>& ids) {
  const Tokenizer& tokenizer = *context.model.tokenizer;
  struct Spelling {
    const char *begin, *hole, *end;
  };
  constexpr Spelling kSpellings[] = {{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
                                     {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}};
  for (const Spelling& spelling : kSpellings) {
    const auto begin = tokenizer.token_id(spelling.begin), hole = tokenizer.token_id(spelling.hole),
               end = tokenizer.token_id(spelling.end);
    if (!begin || !hole || !end) continue;
    if (tokenizer.bos_id()) ids.push_back(*tokenizer.bos_id());
    ids.push_back(*begin);
    const auto append = [&](std::string_view text) {
      const auto more = tokenizer.encode(text);
      ids.insert(ids.end(), more.begin(), more.end());
    };
    append(prefix);
    ids.push_back(*hole);
    append(suffix);
    ids.push_back(*end);
    return std::nullopt;
  }
  return unsupported("suffix", "suffix: the model has no tokens for filling a hole");
}

// One prompt: text or ids. `shown` is what echo puts before the completion.
std::optional<ApiError> read_prompt(const RouteContext& context, const Json& body, const Json& prompt,
                                    GenerationRequest& request, std::vector<std::string>& shown) {
  const Tokenizer& tokenizer = *context.model.tokenizer;
  std::vector<int32_t> ids;
  if (const std::string* text = prompt.as_string()) {
    const auto suffix = string_field(body, "suffix");
    const auto special = bool_field(body, "add_special_tokens");
    if (!suffix) return suffix.error();
    if (!special) return special.error();
    if (*suffix) {
      if (auto error = fill_in_middle(context, *text, **suffix, ids)) return error;
    } else {
      ids = tokenizer.encode(*text, {.add_special = special->value_or(true), .parse_special = true});
    }
    shown.push_back(*text);
  } else if (prompt.is_array()) {
    if (auto error = read_ids(context, prompt, ids)) return error;
    shown.push_back(tokenizer.decode(ids, false));
  } else {
    return invalid_type("prompt", "a string, a list of token ids, or a list of these", prompt);
  }
  if (ids.empty() && tokenizer.bos_id()) ids.push_back(*tokenizer.bos_id());
  if (ids.empty()) return invalid_value("prompt", "the prompt is empty");
  request.prompts.push_back(std::move(ids));
  return std::nullopt;
}

std::optional<ApiError> read_prompts(const RouteContext& context, const Json& body, GenerationRequest& request,
                                     std::vector<std::string>& shown) {
  const Json* prompt = present(body, "prompt");
  if (prompt == nullptr) return missing("prompt");
  const bool many = prompt->is_array() && !prompt->items().empty() && !prompt->items()[0].is_number();
  if (!many) return read_prompt(context, body, *prompt, request, shown);
  if (static_cast<int64_t>(prompt->items().size()) * request.n > kMaxChoices)
    return invalid_value("prompt", fmt::format("{} prompts of {} choices each, at most {} together are allowed",
                                               prompt->items().size(), request.n, kMaxChoices));
  for (const Json& item : prompt->items())
    if (auto error = read_prompt(context, body, item, request, shown)) return error;
  return std::nullopt;
}

std::optional<ApiError> read_best_of(const Json& body, CommonFields& fields, OpenAiReplyOptions& options) {
  const auto field = integer_field(body, "best_of", 1, kMaxBestOf);
  if (!field) return field.error();
  const int32_t n = fields.generation.n;
  const auto best_of = static_cast<int32_t>(field->value_or(n));
  if (best_of < n)
    return invalid_value("best_of", fmt::format("best_of is {}, n is {}: it must not be less", best_of, n));
  if (best_of > n && fields.stream)
    return invalid_value("best_of",
                         fmt::format("best_of is {} and n is {}: which are best is known at the end only, "
                                     "so it cannot be streamed",
                                     best_of, n));
  options.n_shown = n;
  options.best_of = best_of;
  fields.generation.n = best_of;
  // The best are those of largest mean log-probability, which therefore has to be computed.
  if (best_of > n) fields.generation.sampling.top_logprobs = std::max(0, fields.generation.sampling.top_logprobs);
  return std::nullopt;
}

std::optional<ApiError> read_completion(const RouteContext& context, const Json& body, CommonFields& fields,
                                        OpenAiReplyOptions& options) {
  if (auto error = refuse_fields(body)) return error;
  if (auto error = refuse_constraints(body)) return error;
  const auto echo = bool_field(body, "echo");
  if (!echo) return echo.error();
  const auto logprobs = integer_field(body, "logprobs", 0, sample::kMaxTopLogprobs);
  if (!logprobs) return logprobs.error();
  if (*logprobs && echo->value_or(false))
    return unsupported("logprobs", "logprobs: those of an echoed prompt are not supported yet");
  if (auto error = check_max_tokens(fields.generation, body, echo->value_or(false))) return error;
  if (!fields.generation.max_tokens) fields.generation.max_tokens = kDefaultCompletionTokens;
  std::vector<std::string> shown;
  if (auto error = read_prompts(context, body, fields.generation, shown)) return error;
  if (auto error = truncate(context, body, fields.generation)) return error;
  if (*logprobs) fields.generation.sampling.top_logprobs = static_cast<int32_t>(**logprobs);
  options = reply_options(fields, false);
  if (auto error = read_best_of(body, fields, options)) return error;
  options.n_choices = options.best_of * static_cast<int32_t>(fields.generation.prompts.size());
  if (echo->value_or(false)) options.echo = std::move(shown);
  return check_context(context, fields.generation, "prompt");
}

// ---- /v1/chat/completions ----

std::optional<ApiError> read_chat(const RouteContext& context, const Json& body, CommonFields& fields,
                                  OpenAiReplyOptions& options) {
  if (auto error = refuse_fields(body)) return error;
  if (auto error = refuse_constraints(body)) return error;
  if (auto error = check_max_tokens(fields.generation, body, false)) return error;
  if (auto error = read_chat_logprobs(body, fields.generation.sampling)) return error;
  bool reasoning = true;
  for (const char* key : {"include_reasoning", "separate_reasoning"}) {
    const auto shown = bool_field(body, key);
    if (!shown) return shown.error();
    reasoning = reasoning && shown->value_or(true);
  }
  const auto parallel = bool_field(body, "parallel_tool_calls");
  if (!parallel) return parallel.error();
  const auto conversation = conversation_from_openai(body);
  if (!conversation) return api_error(conversation.error(), "messages");
  if (auto error = set_chat(context, *conversation, fields.generation)) return error;
  fields.generation.output->parallel_calls = parallel->value_or(true);
  if (auto error = truncate(context, body, fields.generation)) return error;
  options = reply_options(fields, true);
  options.reasoning = reasoning;
  return check_context(context, fields.generation, "messages");
}

using Read = std::optional<ApiError> (*)(const RouteContext&, const Json&, CommonFields&, OpenAiReplyOptions&);

void answer(const RouteContext& context, const Json& body, const std::shared_ptr<net::Exchange>& exchange,
            Read read) {
  auto fields = read_common(body, context.model.model->info().vocab);
  if (!fields) return send_error(*exchange, fields.error());
  OpenAiReplyOptions options;
  if (const auto error = read(context, body, *fields, options)) return send_error(*exchange, *error);
  auto sink = std::make_shared<OpenAiReply>(context, std::move(options), exchange);
  run(context, std::move(fields->generation), std::move(sink), exchange);
}

}  // namespace

void chat_completions(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange) {
  answer(context, body, exchange, read_chat);
}

void completions(const RouteContext& context, const Json& body, std::shared_ptr<net::Exchange> exchange) {
  answer(context, body, exchange, read_completion);
}

}  // namespace gannet::server
