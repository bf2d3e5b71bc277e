// `gannet run`: chat in the terminal, one answer, or an offline batch.
#pragma once

#include <memory>
#include <string>

#include "cli/options.h"

namespace gannet::cli {

struct RunFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string prompt;
  bool has_prompt = false, raw = false, json = false, quiet = false;
  std::string system;
  std::string thinking, effort;  // empty: the encoder's default
  std::string input, output;     // offline batch
  int32_t batch = 8;             // requests at once
};

// Adds the command to `app`; the flags live as long as the result. run() is called after parsing.
std::shared_ptr<RunFlags> add_run(CLI::App& app);
int run(const RunFlags& flags);

// The modes, each in a file of its own.
int run_chat(const RunFlags& flags, Loaded& loaded);
int run_once(const RunFlags& flags, Loaded& loaded);
int run_batch(const RunFlags& flags, Loaded& loaded);

// Prompt ids of a conversation as this model wants it; bad_request where the checkpoint has no chat format.
Result<std::vector<int32_t>> encode_chat(const engine::LoadedModel& model, const Conversation& conversation);
// The conversation's thinking settings from flags.
Status apply_thinking(const RunFlags& flags, Conversation& conversation);
// Ids of plain text.
Result<std::vector<int32_t>> encode_raw(const engine::LoadedModel& model, const std::string& text);

}  // namespace gannet::cli
