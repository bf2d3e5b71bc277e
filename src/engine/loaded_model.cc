#include "engine/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/mapped_file.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/inventory.h"
#include "model/deepseek_v41/model.h"
#include "model/llama/config.h"
#include "model/llama/inventory.h"
#include "model/llama/model.h"
#include "text/token_map.h"
#include "text/tokenizer_file.h"

namespace gannet::engine {
namespace {

namespace fs = std::filesystem;

// The folder whose small files (config.json, tokenizer.json, ...) belong to a model path.
fs::path folder_of(const fs::path& path) { return fs::is_directory(path) ? path : path.parent_path(); }

Result<Json> read_json(const fs::path& path) {
  GANNET_ASSIGN(const std::string text, read_file(path));
  auto json = Json::parse(text);
  if (!json) return Error{Errc::bad_file, fmt::format("{}: {}", path.string(), json.error().message)};
  return json;
}

bool is_v41(std::string_view family) { return family == "deepseek_v41" || family == "deepseek_v41_text"; }

// The config that synthetic weights are made for.
Result<Json> synthetic_config(const LoadOptions& options) {
  const fs::path path = fs::is_directory(options.path) ? options.path / "config.json" : options.path;
  GANNET_ASSIGN(Json json, read_json(path));
  GANNET_TRY(cut_config(json, options.synthetic_cut, path.string()));
  return json;
}

// The checkpoint: files, or random weights for the config that lies at the path.
Result<weights::Checkpoint> open_checkpoint(const LoadOptions& options) {
  if (!options.synthetic_weights) return weights::Checkpoint::open(options.path);
  GANNET_ASSIGN(const Json json, synthetic_config(options));
  const Json* type = json.find("model_type");
  const std::string family = type != nullptr && type->as_string() != nullptr ? *type->as_string() : "";
  std::vector<weights::WeightSpec> specs;
  if (is_v41(family)) {
    GANNET_ASSIGN(const auto config, deepseek_v41::config_from_json(json, options.path.string()));
    specs = deepseek_v41::inventory(config);
  } else {
    GANNET_ASSIGN(const auto config, llama::config_from_json(json, options.path.string()));
    specs = llama::inventory(config);
  }
  weights::SyntheticOptions synthetic{.seed = options.synthetic_seed};
  if (options.synthetic_max_bytes >= 0) synthetic.max_bytes = options.synthetic_max_bytes;
  return weights::Checkpoint::synthetic(family, std::move(specs), synthetic);
}

Result<std::optional<Tokenizer>> open_tokenizer(const LoadOptions& options, const weights::Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) {
    GANNET_ASSIGN(Tokenizer tokenizer, tokenizer_from_gguf(*checkpoint.gguf()));
    return std::optional<Tokenizer>(std::move(tokenizer));
  }
  const fs::path folder = folder_of(options.path);
  if (!fs::exists(folder / "tokenizer.json")) return std::optional<Tokenizer>();
  GANNET_ASSIGN(Tokenizer tokenizer, load_tokenizer(folder));
  return std::optional<Tokenizer>(std::move(tokenizer));
}

Result<std::unique_ptr<Model>> make_v41(const LoadOptions& options, const LoadedModel& loaded,
                                        const Machine& machine) {
  const Json* json = loaded.checkpoint->config();
  Json read;
  if (json == nullptr) {
    GANNET_ASSIGN(read, synthetic_config(options));
    json = &read;
  }
  GANNET_ASSIGN(const auto config, deepseek_v41::config_from_json(*json, options.path.string()));
  std::vector<int32_t> token_map;
  if (!config.engram.layers.empty()) {
    if (loaded.tokenizer) {
      GANNET_ASSIGN(auto map, engram_token_map(*loaded.tokenizer, config.vocab, config.engram.compressed_vocab));
      token_map = std::move(map.compressed);
    } else {
      // Without a tokenizer only ids come in, and any map of the right size serves a measurement.
      for (int32_t id = 0; id < config.vocab; ++id) token_map.push_back(id % config.engram.compressed_vocab);
    }
  }
  deepseek_v41::Options model_options;
  if (options.numerics == Numerics::integer)
    return Error{Errc::bad_request, "numerics 'integer' is for Llama-class models; DeepSeek-V4.1 has none"};
  model_options.numerics = options.numerics.value_or(Numerics::precise);
  GANNET_ASSIGN(auto model, deepseek_v41::DeepseekV41::load(config, *loaded.checkpoint, std::move(token_map),
                                                            model_options, machine));
  return std::unique_ptr<Model>(std::move(model));
}

Result<std::unique_ptr<Model>> make_llama(const LoadOptions& options, const LoadedModel& loaded,
                                          const Machine& machine) {
  const bool from_files = loaded.checkpoint->config() != nullptr || loaded.checkpoint->gguf() != nullptr;
  Json read;
  if (!from_files) {
    GANNET_ASSIGN(read, synthetic_config(options));
  }
  GANNET_ASSIGN(const auto config, from_files ? llama::config_of(*loaded.checkpoint)
                                              : llama::config_from_json(read, options.path.string()));
  const bool integer = loaded.checkpoint->gguf() != nullptr && machine.device == nullptr;
  const Numerics numerics = options.numerics.value_or(integer ? Numerics::integer : Numerics::precise);
  return llama::create(*loaded.checkpoint, config, numerics, machine);
}

// Ids that end an answer: the tokenizer's, and those of generation_config.json and config.json.
void add_stop_ids(LoadedModel& loaded, const fs::path& folder) {
  if (loaded.tokenizer) loaded.stop_ids = loaded.tokenizer->eos_ids();
  const auto add = [&](const Json* json) {
    const Json* eos = json == nullptr ? nullptr : json->find("eos_token_id");
    if (eos == nullptr) return;
    if (const auto id = eos->as_int()) loaded.stop_ids.push_back(static_cast<int32_t>(*id));
    for (const Json& item : eos->items())
      if (const auto id = item.as_int()) loaded.stop_ids.push_back(static_cast<int32_t>(*id));
  };
  add(loaded.checkpoint->config());
  if (loaded.checkpoint->gguf() == nullptr) {
    const auto generation = read_json(folder / "generation_config.json");
    if (generation) add(&*generation);
  }
  auto& ids = loaded.stop_ids;
  std::erase_if(ids, [&](int32_t id) { return id < 0 || id >= loaded.model->info().vocab; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

void add_token_mask(LoadedModel& loaded) {
  if (!loaded.tokenizer) return;
  const int32_t vocab = loaded.model->info().vocab;
  loaded.token_mask.assign((static_cast<size_t>(vocab) + 31) / 32, 0);
  bool all = true;
  for (int32_t id = 0; id < vocab; ++id) {
    const bool has = loaded.tokenizer->has_token(id);
    all = all && has;
    if (has) loaded.token_mask[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
  }
  if (all) loaded.token_mask.clear();  // nothing to mask
}

// What the files say about prompts, and the encoder that follows from it.
Status add_chat(LoadedModel& loaded, const fs::path& folder, const LoadOptions& options) {
  const std::string& choice = options.chat_template;
  ChatModelInfo info;
  info.model_type = loaded.checkpoint->family();
  const auto spelling = [&](std::optional<int32_t> id) {
    return id ? std::string(loaded.tokenizer->token_bytes(*id)) : "";
  };
  if (!loaded.tokenizer) {
    loaded.chat_problem = "it has no tokenizer";
    return ok();
  }
  info.bos_token = spelling(loaded.tokenizer->bos_id());
  if (!loaded.tokenizer->eos_ids().empty()) info.eos_token = spelling(loaded.tokenizer->eos_ids().front());
  if (const files::Gguf* gguf = loaded.checkpoint->gguf()) {
    if (const auto* value = gguf->value("tokenizer.chat_template"))
      if (const auto text = value->as_string()) info.chat_template = std::string(*text);
  } else {
    if (const Json* names =
            loaded.checkpoint->config() == nullptr ? nullptr : loaded.checkpoint->config()->find("architectures"))
      for (const Json& name : names->items())
        if (name.as_string() != nullptr) info.architectures.push_back(*name.as_string());
    if (auto text = read_file(folder / "chat_template.jinja"))
      info.chat_template = std::move(*text);
    else if (auto config = read_json(folder / "tokenizer_config.json"))
      if (const Json* value = config->find("chat_template"); value != nullptr && value->as_string() != nullptr)
        info.chat_template = *value->as_string();
  }
  auto encoder = make_chat_encoder(info, choice);
  if (encoder)
    loaded.chat = std::move(*encoder);
  else if (choice == "auto")
    loaded.chat_problem = encoder.error().message;  // plain continuation still works
  else
    return encoder.error();
  GANNET_ASSIGN(loaded.output_format,
                output_format(info, loaded.chat ? loaded.chat->name() : "", options.tool_call_parser));
  return ok();
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const LoadOptions& options, const Machine& machine) {
  const auto start = std::chrono::steady_clock::now();
  auto loaded = std::make_unique<LoadedModel>();
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(options.path, error);
  const bool is_file = absolute.extension() == ".gguf" || absolute.extension() == ".safetensors";
  loaded->name = (is_file ? absolute.stem() : absolute.filename()).string();
  loaded->weights_id =
      absolute.string() +
      (options.synthetic_weights
           ? fmt::format("#{} {} {} {}", options.synthetic_seed, options.synthetic_cut.layers,
                         options.synthetic_cut.experts, options.synthetic_max_bytes)
           : "");
  GANNET_ASSIGN(auto checkpoint, open_checkpoint(options));
  loaded->checkpoint = std::make_unique<weights::Checkpoint>(std::move(checkpoint));
  GANNET_ASSIGN(loaded->tokenizer, open_tokenizer(options, *loaded->checkpoint));
  if (machine.device != nullptr && is_v41(loaded->checkpoint->family()))
    return Error{Errc::unsupported,
                 fmt::format("{}: models of DeepSeek-V4.1 do not run on a CUDA device yet", loaded->name)};
  GANNET_ASSIGN(loaded->model, is_v41(loaded->checkpoint->family()) ? make_v41(options, *loaded, machine)
                                                                    : make_llama(options, *loaded, machine));
  if (loaded->tokenizer && loaded->tokenizer->n_vocab() > loaded->model->info().vocab)
    return Error{Errc::bad_file,
                 fmt::format("{}: the tokenizer has ids up to {}, the model a vocabulary of {}", loaded->name,
                             loaded->tokenizer->n_vocab() - 1, loaded->model->info().vocab)};
  add_stop_ids(*loaded, folder_of(options.path));
  add_token_mask(*loaded);
  GANNET_TRY(add_chat(*loaded, folder_of(options.path), options));
  loaded->load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return loaded;
}

}  // namespace gannet::engine
