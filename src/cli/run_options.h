// Flags of `gannet run`.
#pragma once

#include <cstdint>
#include <string>

namespace gannet::cli {

struct RunOptions {
  std::string model;             // empty: the default model
  std::string weights = "file";  // or "synthetic"
  std::string prompt;            // one-shot; empty: chat
  bool has_prompt = false;
  bool raw = false;
  std::string system;
  std::string input, output;     // offline batch, JSON Lines
  int32_t max_tokens = -1;       // -1: until the model stops or the context is full
  double temperature = -1;       // < 0: 0 for --prompt --raw and batches, 0.7 in chat? see run_options.cc
  double top_p = 1, min_p = 0;
  int32_t top_k = 0;
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  uint64_t seed = 0;
  std::string thinking;          // "", "on", "off"
  std::string effort;
  int threads = 0;
  int32_t context = 0;           // 0: the model's, at most 8192
  std::string numerics = "precise";
  std::string isa;
  bool json = false;
  bool verbose = false;
};

// Runs the command. Returns the exit code.
int run(const RunOptions& options);

}  // namespace gannet::cli
