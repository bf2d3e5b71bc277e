#include "cli/run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/utf8.h"
#include "cli/generate.h"
#include "cli/line_editor.h"
#include "text/chat_effort.h"

namespace gannet::cli {
namespace {

Status check_utf8(std::string_view text, std::string_view what) {
  if (const auto at = first_invalid_utf8(text))
    return Error{Errc::bad_request, fmt::format("{} is not valid UTF-8: byte {} is 0x{:02x}", what, *at,
                                                static_cast<unsigned char>(text[*at]))};
  return ok();
}

}  // namespace

std::shared_ptr<RunFlags> add_run(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  app.footer(
      "Examples:\n"
      "  gannet run                                      chat with the default model\n"
      "  gannet run -p \"Why is the sky blue?\"            one answer\n"
      "  gannet run --raw -p \"Once upon a time\"          continue a text\n"
      "  gannet run --input in.jsonl --output out.jsonl  offline batch; run it again to go on where it stopped\n"
      "      in.jsonl: one {\"prompt\": ...} or {\"messages\": [...]} a line, optionally with id, max_tokens,\n"
      "      temperature, seed");
  add_model_flags(app, flags->model);
  add_sampling_flags(app, flags->sampling);
  auto* prompt = app.add_option("-p,--prompt", flags->prompt, "answer this and end");
  app.add_flag("--raw", flags->raw, "the prompt is plain text to continue: no chat template");
  app.add_option("--system", flags->system, "system message of the conversation");
  app.add_option("--thinking", flags->thinking, "on or off, for models that think")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--effort", flags->effort, "how hard to think: low, high, max or 1..100");
  app.add_flag("--json", flags->json, "print one JSON object: text, token_ids, ttft_ms, tokens_per_s, load_ms");
  app.add_flag("-q,--quiet", flags->quiet, "no speed line under the answers");
  auto* input = app.add_option("--input", flags->input, "JSON Lines file of prompts")->excludes(prompt);
  auto* output = app.add_option("--output", flags->output, "JSON Lines file for the answers")->needs(input);
  input->needs(output);
  app.add_option("--batch", flags->batch, "requests of a batch that run at once")->check(CLI::Range(1, 1024));
  app.final_callback([flags, prompt] { flags->has_prompt = prompt->count() > 0; });
  return flags;
}

int run(const RunFlags& flags) {
  if (flags.has_prompt)
    if (const Status good = check_utf8(flags.prompt, "--prompt"); !good) return fail(good.error());
  if (const Status good = check_utf8(flags.system, "--system"); !good) return fail(good.error());
  auto loaded = load(flags.model, {.max_seqs = flags.input.empty() ? 1 : flags.batch});
  if (!loaded) return fail(loaded.error());
  if (!flags.input.empty()) return run_batch(flags, *loaded);
  return flags.has_prompt ? run_once(flags, *loaded) : run_chat(flags, *loaded);
}

Result<std::vector<int32_t>> encode_raw(const engine::LoadedModel& model, const std::string& text) {
  GANNET_TRY(check_utf8(text, "the prompt"));
  if (!model.tokenizer) return Error{Errc::unsupported, fmt::format("{} has no tokenizer", model.name)};
  auto ids = model.tokenizer->encode(text, {.add_special = true, .parse_special = true});
  // Nothing at all cannot be continued; the beginning of a text can.
  if (ids.empty() && model.tokenizer->bos_id()) ids.push_back(*model.tokenizer->bos_id());
  if (ids.empty()) return Error{Errc::bad_request, "the prompt is empty"};
  return ids;
}

Result<std::vector<int32_t>> encode_chat(const engine::LoadedModel& model, const Conversation& conversation) {
  if (!model.chat || !model.tokenizer)
    return Error{Errc::unsupported, fmt::format("{} cannot chat ({}); --raw continues plain text", model.name,
                                                model.tokenizer ? model.chat_problem : "it has no tokenizer")};
  for (const ChatMessage& message : conversation.messages)
    GANNET_TRY(check_utf8(joined_text(message.blocks, "\n"), "the message"));
  GANNET_ASSIGN(const EncodedChat chat, model.chat->encode(conversation));
  if (!chat.images.empty())
    return Error{Errc::unsupported, fmt::format("{}: images are not supported yet", chat.images[0].field)};
  return model.tokenizer->encode_spans(chat.spans);
}

Status apply_thinking(const RunFlags& flags, Conversation& conversation) {
  if (!flags.thinking.empty()) {
    conversation.thinking.on = flags.thinking == "on";
    conversation.thinking.on_stated = true;
  }
  if (!flags.effort.empty()) GANNET_TRY(apply_effort(conversation.thinking, Json(flags.effort), "--effort"));
  return ok();
}

int run_once(const RunFlags& flags, Loaded& loaded) {
  auto sampling = sampling_params(flags.sampling);
  if (!sampling) return fail(sampling.error());
  Conversation conversation;
  if (!flags.system.empty())
    conversation.messages.push_back({.role = Role::system, .blocks = {ContentBlock::of_text(flags.system)}});
  conversation.messages.push_back({.role = Role::user, .blocks = {ContentBlock::of_text(flags.prompt)}});
  if (const Status good = apply_thinking(flags, conversation); !good) return fail(good.error());
  auto prompt = flags.raw ? encode_raw(*loaded.model, flags.prompt) : encode_chat(*loaded.model, conversation);
  if (!prompt) return fail(prompt.error());

  install_interrupt_handler();
  bool written = true;
  const auto show = [&](std::string_view piece) {
    if (flags.json) return;
    written =
        written && std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0;
  };
  auto answer = generate(loaded, std::move(*prompt), std::move(*sampling), flags.sampling.max_tokens, show,
                         [&] { return take_interrupt() || !written; });
  if (!answer) return fail(answer.error());
  const std::string last = flags.json ? answer_json(*answer, loaded.model->load_ms).dump() + "\n" : "\n";
  written = written && std::fwrite(last.data(), 1, last.size(), stdout) == last.size() && std::fflush(stdout) == 0;
  if (!written) return fail({Errc::io, "the answer could not be written: it is not complete"});
  if (!flags.json && !flags.quiet) fmt::print(stderr, "{}\n", speed_line(*answer));
  return answer->finish_reason == "interrupted" ? 130 : 0;
}

}  // namespace gannet::cli
