#include "cli/inspect.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>

#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/inventory.h"
#include "model/llama/config.h"
#include "model/llama/inventory.h"

namespace gannet::cli {
namespace {

using weights::Checkpoint;
using weights::Container;
using weights::Part;
using weights::WeightSpec;

// What both families boil down to here.
struct Described {
  std::vector<WeightSpec> specs;
  bool exact_types = false;
  int64_t n_experts = 0;
};

// A line of /proc/meminfo in bytes, 0 when there is none.
int64_t memory_info(const std::string& text, std::string_view field) {
  const size_t at = text.find(std::string(field) + ":");
  if (at == std::string::npos) return 0;
  return std::strtoll(text.c_str() + at + field.size() + 1, nullptr, 10) * 1024;
}

std::string quantisation_of(const ModelSummary& s) {
  std::string out;
  for (const auto& [type, bytes] : s.type_bytes) {
    if (type == "F8_E8M0") continue;
    const double share =
        100.0 * static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(s.validation.total.bytes, 1));
    if (share < 1 && !out.empty()) continue;
    out += fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", type == "I8" ? "MXFP4" : type, share);
  }
  return out;
}

// "byte-level BPE (smollm)", from GGUF metadata or from a tokenizer.json beside the weights.
std::string tokenizer_of(const Checkpoint& checkpoint) {
  if (const files::Gguf* gguf = checkpoint.gguf()) {
    const auto* model = gguf->value("tokenizer.ggml.model");
    const auto* pre = gguf->value("tokenizer.ggml.pre");
    if (model == nullptr) return "none";
    const std::string_view kind = model->as_string().value_or("?");
    const std::string_view name = kind == "gpt2"    ? "byte-level BPE"
                                  : kind == "llama" ? "SentencePiece-style BPE"
                                                    : kind;
    return pre != nullptr ? fmt::format("{} ({})", name, pre->as_string().value_or("?")) : std::string(name);
  }
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path(checkpoint.path());
  const fs::path folder = fs::is_directory(path, error) ? path : path.parent_path();
  return fs::exists(folder / "tokenizer.json", error) ? "tokenizer.json" : "none";
}

Result<Described> describe_v41(const Json& json, const std::string& name, bool released, ModelSummary& out) {
  GANNET_ASSIGN(const auto c, deepseek_v41::config_from_json(json, name));
  out.context = c.max_context;
  out.vocab = c.vocab;
  out.hidden = c.hidden;
  out.layers = c.n_layers;
  // Cache rows: e2m1 codes with an e4m3 scale per 16 channels, index keys: e2m1 with an e8m0 scale per 32, window
  // rows: e4m3 with an e8m0 scale per 32.
  const int64_t row = c.head_dim / 2 + c.head_dim / 16, key = c.index_head_dim / 2 + c.index_head_dim / 32;
  double per_token = 0;
  for (const int32_t l : c.kv_sources)
    per_token += static_cast<double>(row + key) / c.ratios[static_cast<size_t>(l)];
  out.memory.cache_per_token = static_cast<int64_t>(per_token);
  out.memory.cache_per_sequence =
      int64_t{c.n_layers + c.dspark.n_stages} * c.window * (c.head_dim + c.head_dim / 32);
  return Described{deepseek_v41::inventory(c), released && c.quant.fp8, int64_t{c.n_experts} * c.n_layers};
}

Described describe_llama(const llama::Config& c, ModelSummary& out) {
  out.context = c.max_context;
  out.vocab = c.vocab;
  out.hidden = c.hidden;
  out.layers = c.n_layers;
  const int64_t row = int64_t{2} * 2 * c.n_kv_heads * c.head_dim;  // K and V in bf16
  for (int32_t l = 0; l < c.n_layers; ++l) {
    const bool local = !c.is_local.empty() && c.is_local[static_cast<size_t>(l)];
    if (local)
      out.memory.cache_per_sequence += row * c.sliding_window;
    else
      out.memory.cache_per_token += row;
  }
  const auto moe_layers = std::count(c.is_moe.begin(), c.is_moe.end(), true);
  return {llama::inventory(c), false, moe_layers * c.n_experts};
}

Result<Described> describe(const std::string& family, const Json* config, const files::Gguf* gguf,
                           const std::string& name, bool released, ModelSummary& out) {
  if (gguf != nullptr) {
    GANNET_ASSIGN(const auto c, llama::config_from_gguf(*gguf));
    return describe_llama(c, out);
  }
  if (family == "deepseek_v41") return describe_v41(*config, name, released, out);
  GANNET_ASSIGN(const auto c, llama::config_from_json(*config, name));
  return describe_llama(c, out);
}

void memory(ModelSummary& s, int64_t n_experts) {
  MemorySummary& m = s.memory;
  if (const auto text = read_file("/proc/meminfo", 1 << 20)) {
    m.ram_total = memory_info(*text, "MemTotal");
    m.ram_available = memory_info(*text, "MemAvailable");
  }
  const auto bytes = [&](Part part) { return s.validation.parts[static_cast<size_t>(part)].bytes; };
  m.all = s.validation.total.bytes;
  m.core =
      m.all - bytes(Part::routed_experts) - bytes(Part::engram_tables) - bytes(Part::draft) - bytes(Part::vision);
  m.n_experts = n_experts;
  if (n_experts == 0) return;
  m.one_expert = bytes(Part::routed_experts) / n_experts;
  if (m.one_expert > 0)
    m.experts_that_fit = std::clamp<int64_t>((m.ram_available - m.core) / m.one_expert, 0, n_experts);
}

// Tensors that other programs keep in the same file and the text model does not need.
constexpr std::string_view kIgnored[] = {"rope_freqs.weight", "vision_tower.", "multi_modal_projector.",
                                         "model.vision_tower.", "model.multi_modal_projector."};

std::string_view container_name(Container container) {
  switch (container) {
    case Container::safetensors:
      return "safetensors";
    case Container::gguf:
      return "GGUF";
    case Container::synthetic:
      return "synthetic";
  }
  return "?";
}

std::string_view naming_name(weights::Naming naming) {
  switch (naming) {
    case weights::Naming::released_v41:
      return "released";
    case weights::Naming::transformers_v41:
      return "transformers";
    case weights::Naming::llama:
      return "transformers";
    case weights::Naming::gguf:
      return "GGUF";
  }
  return "?";
}

void count_types(const Checkpoint& checkpoint, ModelSummary& s) {
  std::map<std::string, int64_t, std::less<>> bytes;
  for (const files::TensorInfo& t : checkpoint.tensors())
    bytes[std::string(t.type_text())] += static_cast<int64_t>(t.bytes.size());
  s.type_bytes.assign(bytes.begin(), bytes.end());
  std::stable_sort(s.type_bytes.begin(), s.type_bytes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

void check_all_scales(const Checkpoint& checkpoint, const std::vector<WeightSpec>& specs,
                      weights::Validation& validation) {
  for (const WeightSpec& spec : specs) {
    if (spec.rank == 1) continue;
    const auto view = checkpoint.matrix(spec.name, spec.out, spec.in);
    if (!view) continue;  // reported by the validation
    const Status status = checkpoint.check_scales(spec.name, *view);
    if (status) continue;
    ++validation.n_problems;
    if (validation.problems.size() < 20) validation.problems.push_back(status.error().message);
  }
}

}  // namespace

Result<ModelSummary> summarise(const InspectOptions& options, const Checkpoint& checkpoint) {
  ModelSummary s;
  s.path = checkpoint.path();
  s.container = container_name(checkpoint.container());
  s.family = checkpoint.family();
  s.naming = naming_name(checkpoint.naming());
  s.tokenizer = tokenizer_of(checkpoint);
  const bool released = checkpoint.naming() == weights::Naming::released_v41;
  GANNET_ASSIGN(const Described d,
                describe(s.family, checkpoint.config(), checkpoint.gguf(), checkpoint.config_path(), released, s));
  s.validation = weights::validate(checkpoint, d.specs, d.exact_types, kIgnored);
  if (options.check_scales) check_all_scales(checkpoint, d.specs, s.validation);
  count_types(checkpoint, s);
  s.quantisation = quantisation_of(s);
  memory(s, d.n_experts);
  return s;
}

Result<ModelSummary> summarise_config(const InspectOptions& options) {
  GANNET_ASSIGN(const std::string text, read_file(options.path, int64_t{16} << 20));
  auto json = Json::parse(text);
  if (!json) return Error{Errc::bad_file, fmt::format("{}: {}", options.path, json.error().message)};
  ModelSummary s;
  s.path = options.path;
  s.container = "config";
  s.tokenizer = "none";
  const Json* type = json->find("model_type");
  s.family = type != nullptr && type->as_string() != nullptr ? *type->as_string() : "";
  if (s.family == "deepseek_v41_text") s.family = "deepseek_v41";
  GANNET_ASSIGN(const Described d, describe(s.family, &*json, nullptr, s.path, true, s));
  for (const WeightSpec& spec : d.specs)
    for (weights::PartTotal* part : {&s.validation.parts[static_cast<size_t>(spec.part)], &s.validation.total}) {
      part->tensors += spec.has_scale() ? 2 : 1;
      part->parameters += spec.elements();
      part->bytes += spec.bytes();
    }
  memory(s, d.n_experts);
  return s;
}

namespace {

Result<ModelSummary> run(const InspectOptions& options, std::string& tensors) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if (options.path.ends_with(".json") && !options.path.ends_with(".index.json")) {
    GANNET_ASSIGN(ModelSummary s, summarise_config(options));
    s.seconds = seconds();
    return s;
  }
  GANNET_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(options.path));
  GANNET_ASSIGN(ModelSummary s, summarise(options, checkpoint));
  s.seconds = seconds();
  if (options.tensors) tensors = tensor_list(checkpoint, options.json);
  return s;
}

}  // namespace

int inspect(const InspectOptions& options) {
  std::string tensors;
  const auto summary = run(options, tensors);
  if (!summary) {
    fmt::print(stderr, "gannet inspect: {}\n", summary.error().message);
    return 1;
  }
  const std::string text = tensors + (options.json ? summary_json(*summary) + "\n" : summary_table(*summary));
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fmt::print(stderr, "gannet inspect: cannot write the output: {}\n", std::strerror(errno));
    return 1;
  }
  if (summary->validation.ok()) return 0;
  fmt::print(
      stderr, "gannet inspect: {}{}\n", summary->validation.problems.front(),
      summary->validation.n_problems > 1 ? fmt::format(" (and {} more)", summary->validation.n_problems - 1) : "");
  return 1;
}

std::shared_ptr<InspectOptions> add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  app.add_option("path", options->path, "GGUF or safetensors file, folder of a model, or a config.json")
      ->required();
  app.add_flag("--json", options->json, "one JSON object instead of a table");
  app.add_flag("--tensors", options->tensors, "list every tensor first");
  app.add_flag("--check-scales", options->check_scales,
               "also read every scale and refuse NaN (reads much of the file)");
  return options;
}

}  // namespace gannet::cli
