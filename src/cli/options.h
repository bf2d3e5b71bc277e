// Flags that several commands share, and the way commands report.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "runtime/device.h"

namespace CLI {
class App;
}

namespace gannet::cli {

// Which model, where it runs, and with which numerics.
struct ModelFlags {
  std::string model;             // empty: the default model
  std::string weights = "file";  // or "synthetic"
  uint64_t weights_seed = 1;
  int32_t weights_layers = 0, weights_experts = 0;  // of synthetic weights; 0: as many as the config says
  double weights_max_gb = -1;                       // -1: the default of weights::SyntheticOptions
  std::string numerics = "auto";
  std::string chat_template = "auto", tool_call_parser = "auto";
  std::string isa;  // cap on the instruction set
  std::string device = "cpu";
  int threads = 0;
  int32_t context = 0;  // 0: what the model allows, at most kDefaultContext
};
constexpr int32_t kDefaultContext = 8192;
void add_model_flags(CLI::App& app, ModelFlags& flags);

struct SamplingFlags {
  double temperature = 0.7, top_p = 1, min_p = 0;
  int32_t top_k = 0;
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::string> logit_bias;  // "ID=VALUE"
  uint64_t seed = 0;
  int32_t max_tokens = 0;  // 0: until the model stops or the context is full
};
void add_sampling_flags(CLI::App& app, SamplingFlags& flags);
Result<sample::SamplingParams> sampling_params(const SamplingFlags& flags);

// A model with an engine around it.
struct Loaded {
  std::unique_ptr<Device> device;  // null: the CPU
  Machine machine;
  std::unique_ptr<engine::LoadedModel> model;
  std::unique_ptr<engine::Engine> engine;
};
// `engine` says what the flags do not: sequences, rows, cache memory.
Result<Loaded> load(const ModelFlags& flags, engine::EngineOptions engine);

// Path of a model by path or by its name in a models folder (in the working directory, above the binary, or where
// GANNET_MODELS points). An empty name is the default model.
Result<std::string> find_model(const std::string& name);

// Prints "gannet: MESSAGE" to stderr; returns 1.
int fail(const Error& error);

}  // namespace gannet::cli
