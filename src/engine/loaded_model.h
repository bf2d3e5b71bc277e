// A model ready to run: checkpoint, forward pass, tokenizer, chat encoder and stop tokens, from a path.
// Immutable after load, except that the model is run by one engine at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/synthetic_config.h"
#include "model/model.h"
#include "runtime/exec.h"
#include "text/chat_encoder.h"
#include "text/output_format.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace gannet::engine {

struct LoadOptions {
  std::filesystem::path path;      // GGUF file, safetensors file, or folder with config.json
  bool synthetic_weights = false;  // random weights for the config at `path`
  uint64_t synthetic_seed = 1;
  SyntheticCut synthetic_cut;        // fewer layers and experts than the config has
  int64_t synthetic_max_bytes = -1;  // memory they may take, see weights::SyntheticOptions; -1: its default
  std::optional<Numerics> numerics;  // none: `integer` for a GGUF file run on the CPU, else `precise`
  std::string chat_template = "auto";     // see make_chat_encoder()
  std::string tool_call_parser = "auto";  // see output_format()
};

struct LoadedModel {
  std::string name;        // for replies and messages: the file's or folder's name
  std::string weights_id;  // differs where the weights do; enters cache keys
  std::unique_ptr<weights::Checkpoint> checkpoint;
  std::unique_ptr<Model> model;
  std::optional<Tokenizer> tokenizer;  // synthetic weights may come without: ids only
  std::unique_ptr<ChatEncoder> chat;   // null where the checkpoint says nothing about prompts
  std::string chat_problem;            // why `chat` is null
  OutputFormat output_format = OutputFormat::plain;  // of answers to chats
  std::vector<int32_t> stop_ids;       // end an answer
  std::vector<uint32_t> token_mask;    // one bit an id that has a text; others are never sampled
  double load_ms = 0;

  // Fails with not_found, io, bad_file or unsupported; the sentence names file, field or tensor.
  static Result<std::unique_ptr<LoadedModel>> load(const LoadOptions& options, const Machine& machine);
};

}  // namespace gannet::engine
