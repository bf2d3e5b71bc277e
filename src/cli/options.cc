#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

namespace gannet::cli {
namespace {

constexpr const char* kDefaultModelFile = "SmolLM2-135M-Instruct.Q4_1.gguf";

Result<std::optional<Numerics>> numerics_from(const std::string& name) {
  if (name == "auto") return std::optional<Numerics>();
  if (name == "precise") return std::optional(Numerics::precise);
  if (name == "reference") return std::optional(Numerics::reference);
  if (name == "float") return std::optional(Numerics::float32);
  if (name == "integer") return std::optional(Numerics::integer);
  return Error{Errc::bad_request,
               fmt::format("--numerics is '{}', it must be auto, precise, integer, reference or float", name)};
}

// The device that --device names, with nine tenths of its free memory; null for the CPU.
Result<std::unique_ptr<Device>> open_device(const std::string& name) {
  if (name == "cpu") return std::unique_ptr<Device>();
  int32_t index = 0;
  const std::string_view rest = std::string_view(name).substr(std::min<size_t>(name.size(), 4));
  if (name.starts_with("cuda") && rest.empty()) return Device::open(0, 0);
  if (name.starts_with("cuda:")) {
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), index);
    if (error == std::errc{} && end == rest.data() + rest.size()) return Device::open(index, 0);
  }
  return Error{Errc::bad_request, fmt::format("--device is '{}', it must be cpu, cuda or cuda:N", name)};
}

}  // namespace

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option("-m,--model", flags.model,
                 "GGUF file, safetensors file, folder with config.json, or the name of one in models/, such as "
                 "gannet-mini (default: SmolLM2-135M-Instruct)");
  app.add_option("--weights", flags.weights, "'file', or 'synthetic' for random weights of the model's config")
      ->check(CLI::IsMember({"file", "synthetic"}));
  app.add_option("--weights-seed", flags.weights_seed, "seed of synthetic weights");
  app.add_option("--weights-layers", flags.weights_layers, "synthetic weights for the first layers only")
      ->check(CLI::PositiveNumber);
  app.add_option("--weights-experts", flags.weights_experts, "routed experts of each layer of synthetic weights")
      ->check(CLI::PositiveNumber);
  app.add_option("--weights-max-gb", flags.weights_max_gb,
                 "memory of synthetic weights, beyond which tensors share it (default 8; 0: no limit)")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--numerics", flags.numerics,
                 "what is rounded where: auto (default: integer for GGUF on the CPU, else precise), precise, integer "
                 "(15-bit activations against integer weights), reference (as released, with fp8 activations), float "
                 "(fp32 throughout)")
      ->check(CLI::IsMember({"auto", "precise", "integer", "reference", "float"}));
  app.add_option("--chat-template", flags.chat_template,
                 "how a conversation becomes a prompt: auto (what the model says), deepseek_v41, template, chatml");
  app.add_option(
      "--tool-call-parser", flags.tool_call_parser,
      "how answers write tool calls: auto (what the model says), deepseek_v41, hermes, llama3_json, none");
  app.add_option(
         "-c,--context,--max-model-len,--ctx-size,--max-seq-len", flags.context,
         fmt::format("tokens of prompt and answer together (default: the model's, at most {})", kDefaultContext))
      ->check(CLI::PositiveNumber);
  app.add_option("-t,--threads", flags.threads, "threads to compute with (default: every CPU)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--device", flags.device, "where the model runs: cpu (default), cuda, or cuda:N for the N-th GPU");
  app.add_option("--isa", flags.isa, "highest instruction set to use: scalar, avx2, avx512, amx (for comparisons)")
      ->check(CLI::IsMember({"scalar", "avx2", "avx512", "amx"}));
}

void add_sampling_flags(CLI::App& app, SamplingFlags& flags) {
  app.add_option("-n,--max-tokens", flags.max_tokens, "longest answer (default: until the model stops)")
      ->check(CLI::PositiveNumber);
  app.add_option("--temperature,--temp", flags.temperature,
                 fmt::format("0 takes the likeliest token each time (default {})", flags.temperature));
  app.add_option("--top-k", flags.top_k, "sample among the k likeliest tokens (0: off)");
  app.add_option("--top-p", flags.top_p,
                 "sample among the likeliest tokens that together reach this probability (1: off)");
  app.add_option("--min-p", flags.min_p,
                 "drop tokens below this share of the likeliest one's probability (0: off)");
  app.add_option("--repetition-penalty", flags.repetition_penalty, "divides logits of tokens seen before (1: off)");
  app.add_option("--presence-penalty", flags.presence_penalty,
                 "subtracted once from logits of tokens generated before (0: off)");
  app.add_option("--frequency-penalty", flags.frequency_penalty,
                 "subtracted for each time a token was generated (0: off)");
  app.add_option("--logit-bias", flags.logit_bias, "ID=VALUE, added to the logit of a token id; may be repeated");
  app.add_option("-s,--seed", flags.seed, "the same seed gives the same answer (default 0)");
}

Result<sample::SamplingParams> sampling_params(const SamplingFlags& flags) {
  sample::SamplingParams params;
  params.temperature = flags.temperature;
  params.top_k = flags.top_k;
  params.top_p = flags.top_p;
  params.min_p = flags.min_p;
  params.repetition_penalty = flags.repetition_penalty;
  params.presence_penalty = flags.presence_penalty;
  params.frequency_penalty = flags.frequency_penalty;
  params.seed = flags.seed;
  for (const std::string& bias : flags.logit_bias) {
    int32_t id = 0;
    float value = 0;
    const char* end = bias.data() + bias.size();
    const auto [equals, id_error] = std::from_chars(bias.data(), end, id);
    const bool has_value = id_error == std::errc{} && equals != end && *equals == '=';
    const auto [rest, value_error] = std::from_chars(has_value ? equals + 1 : end, end, value);
    if (!has_value || value_error != std::errc{} || rest != end)
      return Error{Errc::bad_request, fmt::format("--logit-bias is '{}', it must look like 42=-1.5", bias)};
    params.logit_bias.emplace_back(id, value);
  }
  return params;
}

Result<std::string> find_model(const std::string& name) {
  std::error_code ignored;
  if (!name.empty() && std::filesystem::exists(name, ignored)) return name;
  // A name without a path: beside the working directory or the binary, or where GANNET_MODELS points.
  std::vector<std::filesystem::path> places{"models"};
  if (const char* folder = std::getenv("GANNET_MODELS")) places.insert(places.begin(), folder);
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", ignored);
  for (auto up = binary.parent_path(); up.has_relative_path(); up = up.parent_path())
    places.push_back(up / "models");
  for (const auto& place : places)
    for (const std::string& file : name.empty() ? std::vector<std::string>{kDefaultModelFile}
                                                : std::vector<std::string>{name, name + ".gguf"})
      if (std::filesystem::exists(place / file, ignored)) return (place / file).string();
  if (!name.empty())
    return Error{Errc::not_found,
                 fmt::format("there is no model '{}', neither as a path nor in a models folder", name)};
  return Error{Errc::not_found,
               fmt::format("the default model {} is not there; tools/get_model.sh gets it, --model names another",
                           kDefaultModelFile)};
}

Result<Loaded> load(const ModelFlags& flags, engine::EngineOptions engine_options) {
  Loaded loaded;
  loaded.machine = this_machine(flags.isa);
  GANNET_ASSIGN(loaded.device, open_device(flags.device));
  loaded.machine.device = loaded.device.get();
  engine::LoadOptions options;
  GANNET_ASSIGN(options.path, find_model(flags.model));
  options.synthetic_weights = flags.weights == "synthetic";
  options.synthetic_seed = flags.weights_seed;
  options.synthetic_cut = {flags.weights_layers, flags.weights_experts};
  if (flags.weights_max_gb >= 0) options.synthetic_max_bytes = static_cast<int64_t>(flags.weights_max_gb * 1e9);
  if (!options.synthetic_weights && (options.synthetic_cut != engine::SyntheticCut{} || flags.weights_max_gb >= 0))
    return Error{Errc::bad_request,
                 "--weights-layers, --weights-experts and --weights-max-gb are for --weights synthetic"};
  options.chat_template = flags.chat_template;
  options.tool_call_parser = flags.tool_call_parser;
  GANNET_ASSIGN(options.numerics, numerics_from(flags.numerics));
  GANNET_ASSIGN(loaded.model, engine::LoadedModel::load(options, loaded.machine));
  const int32_t longest = loaded.model->model->info().max_context;
  if (flags.context > longest)
    return Error{Errc::bad_request,
                 fmt::format("--context is {}, {} allows {}", flags.context, loaded.model->name, longest)};
  engine_options.max_context = flags.context > 0 ? flags.context : std::min(longest, kDefaultContext);
  engine_options.n_threads = flags.threads;
  engine_options.token_mask = loaded.model->token_mask;
  GANNET_ASSIGN(loaded.engine, engine::Engine::create(*loaded.model->model, loaded.machine, engine_options,
                                                      loaded.model->weights_id));
  return loaded;
}

int fail(const Error& error) {
  fmt::print(stderr, "gannet: {}\n", error.message);
  return 1;
}

}  // namespace gannet::cli
