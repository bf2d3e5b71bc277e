#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "model/llama/config.h"
#include "model/llama/config_rules.h"

namespace gannet::llama {
namespace {

std::optional<Family> family_of(std::string_view architecture) {
  if (architecture == "llama") return Family::llama;
  if (architecture == "qwen2") return Family::qwen2;
  if (architecture == "qwen3") return Family::qwen3;
  if (architecture == "qwen3moe") return Family::qwen3_moe;
  if (architecture == "gemma3") return Family::gemma3;
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(const files::Gguf& gguf) : g_(gguf) {}

  Result<Config> run() {
    GANNET_ASSIGN(const std::string_view architecture, g_.get_string("general.architecture"));
    const auto family = family_of(architecture);
    if (!family)
      return Error{
          Errc::unsupported,
          fmt::format("{}: general.architecture = {} is not supported (llama, qwen2, qwen3, qwen3moe, gemma3 are)",
                      g_.name(), architecture.substr(0, 64))};
    prefix_ = std::string(architecture) + ".";
    c_.family = *family;
    GANNET_TRY(shape());
    GANNET_TRY(refused());
    GANNET_TRY(rope());
    GANNET_TRY(from_tensors());
    if (c_.family == Family::qwen3_moe) GANNET_TRY(experts());
    if (c_.family == Family::gemma3) GANNET_TRY(gemma());
    GANNET_TRY(tokens());
    GANNET_TRY(check_rules(c_, g_.name()));
    return std::move(c_);
  }

 private:
  Error bad(std::string text) const { return {Errc::bad_file, fmt::format("{}: {}", g_.name(), text)}; }
  const files::GgufValue* value(std::string_view key) const { return g_.value(prefix_ + std::string(key)); }

  // An integer, or an array whose entries are all equal (some writers give one per layer).
  Status integer(int32_t& out, std::string_view key, std::optional<int64_t> fallback, int64_t low,
                 int64_t high) const {
    const files::GgufValue* v = value(key);
    if (v == nullptr && fallback) {
      out = static_cast<int32_t>(*fallback);
      return ok();
    }
    std::optional<int64_t> n = v != nullptr ? v->as_int() : std::nullopt;
    if (v != nullptr && !n) {
      if (const auto list = v->as_ints(); list && !list->empty()) {
        if (std::adjacent_find(list->begin(), list->end(), std::not_equal_to<>()) != list->end())
          return Error{Errc::unsupported, fmt::format("{}: {}{} differs between layers, which is not supported",
                                                      g_.name(), prefix_, key)};
        n = list->front();
      }
    }
    if (!n) return g_.get_int(prefix_ + std::string(key)).error();
    if (*n < low || *n > high)
      return bad(fmt::format("{}{} = {} is not from {} to {}", prefix_, key, *n, low, high));
    out = static_cast<int32_t>(*n);
    return ok();
  }

  Status number(double& out, std::string_view key, std::optional<double> fallback, double low, double high) const {
    if (value(key) == nullptr && fallback) {
      out = *fallback;
      return ok();
    }
    GANNET_ASSIGN(out, g_.get_double(prefix_ + std::string(key)));
    if (!(out >= low) || !(out <= high))
      return bad(fmt::format("{}{} = {:g} is not from {:g} to {:g}", prefix_, key, out, low, high));
    return ok();
  }

  Status shape() {
    GANNET_TRY(integer(c_.n_layers, "block_count", std::nullopt, 1, kMaxLayers));
    GANNET_TRY(integer(c_.hidden, "embedding_length", std::nullopt, 1, kMaxDim));
    GANNET_TRY(integer(c_.n_heads, "attention.head_count", std::nullopt, 1, 4096));
    GANNET_TRY(integer(c_.n_kv_heads, "attention.head_count_kv", c_.n_heads, 1, 4096));
    GANNET_TRY(integer(c_.ffn, "feed_forward_length", std::nullopt, 1, kMaxDim));
    GANNET_TRY(integer(c_.max_context, "context_length", std::nullopt, 1, int64_t{1} << 30));
    std::optional<int64_t> head_dim;
    if (c_.hidden % c_.n_heads == 0) head_dim = c_.hidden / c_.n_heads;
    GANNET_TRY(integer(c_.head_dim, "attention.key_length", head_dim, 2, 8192));
    int32_t value_dim = 0, rope_dim = 0;
    GANNET_TRY(integer(value_dim, "attention.value_length", c_.head_dim, 1, 8192));
    if (value_dim != c_.head_dim)
      return Error{Errc::unsupported,
                   fmt::format("{}: {}attention.value_length = {} is not supported (key_length = {} is)", g_.name(),
                               prefix_, value_dim, c_.head_dim)};
    GANNET_TRY(integer(rope_dim, "rope.dimension_count", c_.head_dim, 1, 8192));
    if (rope_dim != c_.head_dim)
      return Error{Errc::unsupported,
                   fmt::format("{}: {}rope.dimension_count = {} is not supported (key_length = {} is)", g_.name(),
                               prefix_, rope_dim, c_.head_dim)};
    GANNET_TRY(number(c_.rms_eps, "attention.layer_norm_rms_epsilon", std::nullopt, 0, 1));
    c_.query_scale = 1.0 / std::sqrt(static_cast<double>(c_.head_dim));
    return vocabulary();
  }

  Status vocabulary() {
    const files::GgufValue* tokens = g_.value("tokenizer.ggml.tokens");
    std::optional<int64_t> n;
    if (tokens != nullptr && tokens->type() == files::GgufType::array) n = tokens->size();
    if (value("vocab_size") != nullptr) n = std::nullopt;
    if (n && (*n < 1 || *n > 1 << 24)) return bad(fmt::format("tokenizer.ggml.tokens has {} entries", *n));
    return integer(c_.vocab, "vocab_size", n, 1, 1 << 24);
  }

  Status refused() const {
    for (const std::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
      const files::GgufValue* v = value(key);
      if (v != nullptr && v->as_double().value_or(1) != 0)
        return Error{Errc::unsupported, fmt::format("{}: {}{} is not supported", g_.name(), prefix_, key)};
    }
    if (c_.family != Family::qwen3_moe)
      if (const auto* v = value("expert_count"); v != nullptr && v->as_int().value_or(1) != 0)
        return Error{Errc::unsupported,
                     fmt::format("{}: {}expert_count is not supported for this architecture", g_.name(), prefix_)};
    return ok();
  }

  Status rope() {
    c_.rope_pairs = c_.family == Family::llama ? RopePairs::interleaved : RopePairs::half_split;
    Rope& r = c_.rope;
    GANNET_TRY(number(r.theta, "rope.freq_base", c_.family == Family::gemma3 ? 1e6 : 1e4, 1, 1e12));
    std::string_view type = "none";
    if (value("rope.scaling.type") != nullptr) {
      GANNET_ASSIGN(type, g_.get_string(prefix_ + "rope.scaling.type"));
    } else if (value("rope.scaling.factor") != nullptr || value("rope.scale_linear") != nullptr) {
      type = "linear";  // older files name the factor alone
    }
    if (type == "linear" || type == "yarn") {
      GANNET_TRY(number(r.factor,
                        value("rope.scaling.factor") != nullptr ? "rope.scaling.factor" : "rope.scale_linear",
                        std::nullopt, 1, 1e6));
      int32_t original = 0;
      GANNET_TRY(integer(original, "rope.scaling.original_context_length", c_.max_context, 1, int64_t{1} << 30));
      r.original_context = original;
      r.scaling = type == "linear" ? RopeScaling::linear : RopeScaling::yarn;
      if (type == "yarn") {
        double attention = 1;
        GANNET_TRY(number(attention, "rope.scaling.attn_factor", 1, 1e-6, 1e6));
        GANNET_TRY(number(r.beta_fast, "rope.scaling.yarn_beta_fast", 32, 1e-3, 1e6));
        GANNET_TRY(number(r.beta_slow, "rope.scaling.yarn_beta_slow", 1, 1e-3, 1e6));
        r.attention_factor = attention * yarn_attention_factor(r.factor);
      }
    } else if (type != "none") {
      return Error{Errc::unsupported,
                   fmt::format("{}: {}rope.scaling.type = {} is not supported (none, linear, yarn are)", g_.name(),
                               prefix_, type.substr(0, 64))};
    }
    c_.rope_local = r;
    return ok();
  }

  // What the metadata does not say shows in which tensors there are.
  Status from_tensors() {
    const auto has = [&](std::string_view name) { return g_.find(name) != nullptr; };
    c_.tied_embeddings = !has("output.weight");
    c_.qkv_bias = has("blk.0.attn_q.bias");
    c_.o_bias = has("blk.0.attn_output.bias");
    c_.mlp_bias = has("blk.0.ffn_gate.bias");
    c_.qk_norm = c_.family != Family::llama && c_.family != Family::qwen2;
    const files::TensorInfo* freqs = g_.find("rope_freqs.weight");
    if (freqs == nullptr) return ok();
    if (freqs->type != files::StorageType::f32 || !(freqs->shape == files::Shape{c_.head_dim / 2}))
      return bad(fmt::format("rope_freqs.weight of {} {} does not fit a head of {} channels", freqs->type_text(),
                             freqs->shape.text(), c_.head_dim));
    for (int64_t i = 0; i < c_.head_dim / 2; ++i) {
      float divisor = 0;
      std::memcpy(&divisor, freqs->bytes.data() + 4 * i, 4);
      if (!std::isfinite(divisor) || divisor <= 0)
        return bad(fmt::format("rope_freqs.weight[{}] = {} is no divisor", i, divisor));
      c_.rope_divisors.push_back(divisor);
    }
    return ok();
  }

  Status experts() {
    GANNET_TRY(integer(c_.n_experts, "expert_count", std::nullopt, 1, 65536));
    GANNET_TRY(integer(c_.n_experts_per_token, "expert_used_count", std::nullopt, 1, 1024));
    GANNET_TRY(integer(c_.expert_ffn, "expert_feed_forward_length", std::nullopt, 1, kMaxDim));
    c_.norm_topk_prob = true;  // the architecture's rule in this format
    c_.is_moe.assign(static_cast<size_t>(c_.n_layers), true);
    return ok();
  }

  // The format fixes what config.json spells out: five local layers to a global one, plain rotary tables of base
  // 10,000 in local layers, and the query scale of the 27B model (62 layers), which is not head_dim^-1/2.
  Status gemma() {
    c_.post_norms = true;
    c_.activation = Activation::gelu_tanh;
    c_.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(c_.hidden)));
    if (c_.n_layers == 62) c_.query_scale = 1.0 / std::sqrt(static_cast<double>(c_.hidden) / c_.n_heads);
    c_.rope_local = Rope();
    GANNET_TRY(number(c_.rope_local.theta, "rope.freq_base_swa", 1e4, 1, 1e12));
    if (value("attention.sliding_window") == nullptr) {
      c_.rope_local = c_.rope;
      return ok();
    }
    GANNET_TRY(integer(c_.sliding_window, "attention.sliding_window", std::nullopt, 1, int64_t{1} << 30));
    c_.is_local = local_pattern(c_.n_layers, 6);
    return ok();
  }

  Status tokens() {
    const auto id = [&](std::string_view key) -> std::optional<int64_t> {
      const files::GgufValue* v = g_.value(key);
      const auto n = v != nullptr ? v->as_int() : std::nullopt;
      return n && *n >= 0 && *n <= 1 << 24 ? n : std::nullopt;
    };
    c_.bos_id = static_cast<int32_t>(id("tokenizer.ggml.bos_token_id").value_or(-1));
    for (const std::string_view key :
         {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
      if (const auto n = id(key); n && std::find(c_.eos_ids.begin(), c_.eos_ids.end(), *n) == c_.eos_ids.end())
        c_.eos_ids.push_back(static_cast<int32_t>(*n));
    return ok();
  }

  const files::Gguf& g_;
  std::string prefix_;
  Config c_;
};

}  // namespace

Result<Config> config_from_gguf(const files::Gguf& gguf) { return Parser(gguf).run(); }

}  // namespace gannet::llama
