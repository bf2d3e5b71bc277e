#include "model/llama/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "files/config_reader.h"
#include "model/llama/config_rules.h"

namespace gannet::llama {
namespace {

using files::ConfigReader;

std::optional<Family> family_of(std::string_view model_type) {
  if (model_type == "llama") return Family::llama;
  if (model_type == "qwen2") return Family::qwen2;
  if (model_type == "qwen3") return Family::qwen3;
  if (model_type == "qwen3_moe") return Family::qwen3_moe;
  if (model_type == "gemma3_text") return Family::gemma3;
  return std::nullopt;
}

class Parser {
 public:
  Parser(const Json& root, const Json& text, std::string_view name)
      : root_(root, name), r_(text, name), name_(name) {}

  Result<Config> run() {
    GANNET_ASSIGN(const std::string type, r_.text({"model_type"}, std::nullopt));
    const auto family = family_of(type);
    if (!family)
      return r_.unsupported("model_type", "is not supported (llama, qwen2, qwen3, qwen3_moe, gemma3_text are)");
    c_.family = *family;
    GANNET_TRY(shape());
    GANNET_TRY(choices());
    GANNET_TRY(rope());
    GANNET_TRY(window());
    if (c_.family == Family::qwen3_moe) GANNET_TRY(experts());
    if (c_.family == Family::gemma3) GANNET_TRY(gemma());
    GANNET_TRY(tokens());
    GANNET_TRY(refuse_quantised());
    GANNET_TRY(check_rules(c_, name_));
    return std::move(c_);
  }

 private:
  bool is_gemma() const { return c_.family == Family::gemma3; }

  Status shape() {
    GANNET_TRY(r_.read(c_.vocab, {"vocab_size"}, std::nullopt, 1, 1 << 24));
    GANNET_TRY(r_.read(c_.hidden, {"hidden_size"}, std::nullopt, 1, kMaxDim));
    GANNET_TRY(r_.read(c_.n_layers, {"num_hidden_layers"}, std::nullopt, 1, kMaxLayers));
    GANNET_TRY(r_.read(c_.n_heads, {"num_attention_heads"}, std::nullopt, 1, 4096));
    GANNET_TRY(r_.read(c_.n_kv_heads, {"num_key_value_heads"}, c_.n_heads, 1, 4096));
    GANNET_TRY(r_.read(c_.ffn, {"intermediate_size"}, std::nullopt, 1, kMaxDim));
    std::optional<int64_t> head_dim;
    if (c_.family == Family::gemma3)
      head_dim = 256;
    else if (c_.family == Family::qwen3)
      head_dim = 128;
    else if (c_.hidden % c_.n_heads == 0)
      head_dim = c_.hidden / c_.n_heads;
    GANNET_TRY(r_.read(c_.head_dim, {"head_dim"}, head_dim, 2, 8192));
    GANNET_TRY(
        r_.read(c_.max_context, {"max_position_embeddings"}, is_gemma() ? 131072 : 2048, 1, int64_t{1} << 30));
    GANNET_ASSIGN(c_.rms_eps, r_.number({"rms_norm_eps"}, 1e-6, 0, 1));
    c_.query_scale = 1.0 / std::sqrt(static_cast<double>(c_.head_dim));
    return ok();
  }

  Status choices() {
    GANNET_ASSIGN(const std::string act,
                  r_.text({"hidden_act", "hidden_activation"}, is_gemma() ? "gelu_pytorch_tanh" : "silu"));
    if (act == "gelu_pytorch_tanh")
      c_.activation = Activation::gelu_tanh;
    else if (act != "silu")
      return r_.unsupported(r_.has({"hidden_act"}) ? "hidden_act" : "hidden_activation",
                            "is not supported (silu and gelu_pytorch_tanh are)");
    GANNET_ASSIGN(const bool bias, r_.boolean({"attention_bias"}, false));
    c_.qkv_bias = bias || c_.family == Family::qwen2;
    c_.o_bias = bias && c_.family != Family::qwen2;
    GANNET_ASSIGN(c_.mlp_bias, r_.boolean({"mlp_bias"}, false));
    c_.qk_norm = c_.family == Family::qwen3 || c_.family == Family::qwen3_moe || is_gemma();
    const ConfigReader& top = r_.has({"tie_word_embeddings"}) ? r_ : root_;
    GANNET_ASSIGN(c_.tied_embeddings, top.boolean({"tie_word_embeddings"}, is_gemma()));
    for (const std::string_view field : {"attn_logit_softcapping", "final_logit_softcapping"})
      if (r_.has({field})) return r_.unsupported(field, "is not supported (null is)");
    for (const std::string_view field : {"use_bidirectional_attention"}) {
      GANNET_ASSIGN(const bool on, r_.boolean({field}, false));
      if (on) return r_.unsupported(field, "is not supported (false is)");
    }
    return ok();
  }

  // rope_theta with rope_scaling; or rope_parameters, flat or one object for each kind of layer.
  Status rope() {
    GANNET_ASSIGN(c_.rope.theta, r_.number({"rope_theta"}, is_gemma() ? 1e6 : 1e4, 1, 1e12));
    if (const Json* scaling = r_.find({"rope_scaling"})) GANNET_TRY(scale(c_.rope, *scaling, "rope_scaling"));
    c_.rope_local = c_.rope;
    if (is_gemma()) {
      c_.rope_local = Rope();
      GANNET_ASSIGN(c_.rope_local.theta, r_.number({"rope_local_base_freq"}, 1e4, 1, 1e12));
    }
    const Json* parameters = r_.find({"rope_parameters"});
    if (parameters == nullptr) return ok();
    if (!parameters->is_object()) return r_.broken("rope_parameters", "is no object");
    const Json* full = parameters->find("full_attention");
    const Json* local = parameters->find("sliding_attention");
    if (full == nullptr && local == nullptr) {
      GANNET_TRY(scale(c_.rope, *parameters, "rope_parameters"));
      if (!is_gemma()) c_.rope_local = c_.rope;
      return ok();
    }
    if (full != nullptr) GANNET_TRY(scale(c_.rope, *full, "rope_parameters.full_attention"));
    c_.rope_local = is_gemma() ? c_.rope_local : c_.rope;
    if (local != nullptr) GANNET_TRY(scale(c_.rope_local, *local, "rope_parameters.sliding_attention"));
    return ok();
  }

  Status scale(Rope& rope, const Json& json, std::string_view field) {
    if (!json.is_object()) return Error{Errc::bad_file, fmt::format("{}: {} is no object", name_, field)};
    const ConfigReader s(json, fmt::format("{}: {}", name_, field));
    GANNET_ASSIGN(rope.theta, s.number({"rope_theta"}, rope.theta, 1, 1e12));
    GANNET_ASSIGN(const double partial, s.number({"partial_rotary_factor"}, 1, -1e9, 1e9));
    if (partial != 1) return s.unsupported("partial_rotary_factor", "is not supported (1 is)");
    GANNET_ASSIGN(const std::string type, s.text({"rope_type", "type"}, "default"));
    rope.scaling = RopeScaling::none;
    if (type == "default") return ok();
    const int64_t trained = c_.max_context;
    GANNET_ASSIGN(rope.factor, s.number({"factor"}, std::nullopt, 1, 1e6));
    GANNET_ASSIGN(rope.original_context,
                  s.integer({"original_max_position_embeddings"}, trained, 1, int64_t{1} << 40));
    if (type == "linear") {
      rope.scaling = RopeScaling::linear;
    } else if (type == "llama3") {
      rope.scaling = RopeScaling::llama3;
      GANNET_ASSIGN(rope.low_freq_factor, s.number({"low_freq_factor"}, std::nullopt, 1e-6, 1e6));
      GANNET_ASSIGN(rope.high_freq_factor, s.number({"high_freq_factor"}, std::nullopt, 1e-6, 1e6));
    } else if (type == "yarn") {
      GANNET_TRY(yarn(rope, s));
    } else {
      return s.unsupported(s.has({"rope_type"}) ? "rope_type" : "type",
                           "is not supported (default, linear, llama3, yarn are)");
    }
    return ok();
  }

  static Status yarn(Rope& rope, const ConfigReader& s) {
    rope.scaling = RopeScaling::yarn;
    GANNET_ASSIGN(rope.beta_fast, s.number({"beta_fast"}, 32, 1e-3, 1e6));
    GANNET_ASSIGN(rope.beta_slow, s.number({"beta_slow"}, 1, 1e-3, 1e6));
    GANNET_ASSIGN(const bool truncate, s.boolean({"truncate"}, true));
    if (!truncate) return s.unsupported("truncate", "is not supported (true is)");
    for (const std::string_view field : {"mscale", "mscale_all_dim"})
      if (s.has({field})) return s.unsupported(field, "is not supported (absent is)");
    GANNET_ASSIGN(rope.attention_factor,
                  s.number({"attention_factor"}, yarn_attention_factor(rope.factor), 1e-6, 1e6));
    return ok();
  }

  Status window() {
    const bool gemma = is_gemma();
    GANNET_ASSIGN(const bool on, r_.boolean({"use_sliding_window"}, gemma));
    const Json* types = r_.find({"layer_types"});
    if (!on && types == nullptr) return ok();
    GANNET_ASSIGN(const int64_t size, r_.integer({"sliding_window"}, 4096, 1, int64_t{1} << 30));
    std::vector<bool> local(static_cast<size_t>(c_.n_layers), false);
    if (types != nullptr) {
      if (!types->is_array() || static_cast<int64_t>(types->items().size()) != c_.n_layers)
        return r_.broken("layer_types", fmt::format("does not have num_hidden_layers = {} entries", c_.n_layers));
      for (size_t l = 0; l < local.size(); ++l) {
        const std::string* type = types->items()[l].as_string();
        if (type == nullptr || (*type != "full_attention" && *type != "sliding_attention"))
          return r_.unsupported("layer_types", "has an entry that is neither full_attention nor sliding_attention");
        local[l] = *type == "sliding_attention";
      }
    } else if (gemma) {
      GANNET_ASSIGN(const int64_t period,
                    r_.integer({"sliding_window_pattern", "_sliding_window_pattern"}, 6, 1, kMaxLayers));
      local = local_pattern(c_.n_layers, static_cast<int32_t>(period));
    } else {
      GANNET_ASSIGN(const int64_t first, r_.integer({"max_window_layers"}, 28, 0, kMaxLayers));
      for (size_t l = static_cast<size_t>(first); l < local.size(); ++l) local[l] = true;
    }
    if (std::find(local.begin(), local.end(), true) == local.end()) return ok();
    c_.sliding_window = static_cast<int32_t>(size);
    c_.is_local = std::move(local);
    return ok();
  }

  Status experts() {
    GANNET_TRY(r_.read(c_.n_experts, {"num_experts", "num_local_experts"}, std::nullopt, 1, 65536));
    GANNET_TRY(r_.read(c_.n_experts_per_token, {"num_experts_per_tok"}, std::nullopt, 1, 1024));
    GANNET_TRY(r_.read(c_.expert_ffn, {"moe_intermediate_size"}, std::nullopt, 1, kMaxDim));
    GANNET_ASSIGN(c_.norm_topk_prob, r_.boolean({"norm_topk_prob"}, false));
    GANNET_ASSIGN(const int64_t step, r_.integer({"decoder_sparse_step"}, 1, 1, kMaxLayers));
    GANNET_ASSIGN(const auto dense, r_.integers({"mlp_only_layers"}, 0, c_.n_layers - 1));
    c_.is_moe.assign(static_cast<size_t>(c_.n_layers), false);
    for (int32_t l = 0; l < c_.n_layers; ++l) c_.is_moe[static_cast<size_t>(l)] = (l + 1) % step == 0;
    if (dense)
      for (const int64_t l : *dense) c_.is_moe[static_cast<size_t>(l)] = false;
    return ok();
  }

  Status gemma() {
    c_.norm_plus_one = true;
    c_.post_norms = true;
    c_.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(c_.hidden)));
    GANNET_ASSIGN(const double scalar, r_.number({"query_pre_attn_scalar"}, 256, 1e-6, 1e9));
    c_.query_scale = 1.0 / std::sqrt(scalar);
    return ok();
  }

  Status tokens() {
    const ConfigReader& bos = r_.has({"bos_token_id"}) ? r_ : root_;
    GANNET_TRY(bos.read(c_.bos_id, {"bos_token_id"}, -1, -1, 1 << 24));
    const ConfigReader& eos = r_.has({"eos_token_id"}) ? r_ : root_;
    const Json* value = eos.find({"eos_token_id"});
    if (value == nullptr) return ok();
    std::vector<int64_t> ids;
    if (value->is_array()) {
      auto list = eos.integers({"eos_token_id"}, 0, 1 << 24);
      if (!list) return list.error();
      ids = list->value();
    } else {
      GANNET_ASSIGN(const int64_t id, eos.integer({"eos_token_id"}, std::nullopt, 0, 1 << 24));
      ids = {id};
    }
    c_.eos_ids.assign(ids.begin(), ids.end());
    return ok();
  }

  // Weights of this family are read as F32, F16 or BF16 from safetensors.
  Status refuse_quantised() const {
    for (const ConfigReader* reader : {&root_, &r_})
      if (reader->has({"quantization_config"}))
        return reader->unsupported("quantization_config", "is not supported for this family");
    return ok();
  }

  const ConfigReader root_, r_;
  std::string_view name_;
  Config c_;
};

}  // namespace

Result<Config> config_from_json(const Json& json, std::string_view name) {
  if (!json.is_object()) return Error{Errc::bad_file, fmt::format("{} is no JSON object", name)};
  const Json* text = json.find("text_config");  // Gemma 3 with vision nests the text model
  if (text != nullptr && !text->is_null() && !text->is_object())
    return Error{Errc::bad_file, fmt::format("{}: text_config is no object", name)};
  return Parser(json, text != nullptr && text->is_object() ? *text : json, name).run();
}

}  // namespace gannet::llama
