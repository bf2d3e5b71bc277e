#include "model/llama/inventory.h"

#include <fmt/format.h>

namespace gannet::llama {
namespace {

using weights::Fill;
using weights::Part;
using weights::WeightSpec;

class Builder {
 public:
  explicit Builder(const Config& config) : c_(config) {}

  std::vector<WeightSpec> run() {
    matrix("model.embed_tokens.weight", c_.vocab, c_.hidden, Part::embedding).fill = Fill::embedding;
    for (int32_t l = 0; l < c_.n_layers; ++l) layer(l);
    norm("model.norm.weight", c_.hidden);
    if (!c_.tied_embeddings) matrix("lm_head.weight", c_.vocab, c_.hidden, Part::head);
    return std::move(specs_);
  }

 private:
  WeightSpec& matrix(std::string name, int64_t out, int64_t in, Part part) {
    WeightSpec& s = specs_.emplace_back();
    s.name = std::move(name);
    s.out = out;
    s.in = in;
    s.part = part;
    return s;
  }
  void vector(std::string name, int64_t n, Part part, Fill fill) {
    WeightSpec& s = matrix(std::move(name), 1, n, part);
    s.rank = 1;
    s.fill = fill;
  }
  // The stored weight of a norm is about 0 where the norm adds 1 to it.
  void norm(std::string name, int64_t n) {
    vector(std::move(name), n, Part::norms, c_.norm_plus_one ? Fill::offset : Fill::norm);
  }

  void mlp(const std::string& b, int64_t ffn, bool bias, Part part) {
    matrix(b + "gate_proj.weight", ffn, c_.hidden, part);
    matrix(b + "up_proj.weight", ffn, c_.hidden, part);
    matrix(b + "down_proj.weight", c_.hidden, ffn, part);
    if (!bias) return;
    vector(b + "gate_proj.bias", ffn, part, Fill::offset);
    vector(b + "up_proj.bias", ffn, part, Fill::offset);
    vector(b + "down_proj.bias", c_.hidden, part, Fill::offset);
  }

  void layer(int32_t l) {
    const std::string b = fmt::format("model.layers.{}.", l), attention = b + "self_attn.";
    const int64_t C = c_.hidden, q = int64_t{c_.n_heads} * c_.head_dim, kv = int64_t{c_.n_kv_heads} * c_.head_dim;
    norm(b + "input_layernorm.weight", C);
    norm(b + "post_attention_layernorm.weight", C);
    if (c_.post_norms) {
      norm(b + "pre_feedforward_layernorm.weight", C);
      norm(b + "post_feedforward_layernorm.weight", C);
    }
    for (const auto& [name, out] : {std::pair{"q_proj", q}, std::pair{"k_proj", kv}, std::pair{"v_proj", kv}}) {
      matrix(attention + name + ".weight", out, C, Part::attention);
      if (c_.qkv_bias) vector(attention + name + ".bias", out, Part::attention, Fill::offset);
    }
    matrix(attention + "o_proj.weight", C, q, Part::attention);
    if (c_.o_bias) vector(attention + "o_proj.bias", C, Part::attention, Fill::offset);
    if (c_.qk_norm) {
      norm(attention + "q_norm.weight", c_.head_dim);
      norm(attention + "k_norm.weight", c_.head_dim);
    }
    if (c_.is_moe.empty() || !c_.is_moe[static_cast<size_t>(l)])
      return mlp(b + "mlp.", c_.ffn, c_.mlp_bias, Part::ffn);
    matrix(b + "mlp.gate.weight", c_.n_experts, C, Part::router);
    for (int32_t e = 0; e < c_.n_experts; ++e)
      mlp(fmt::format("{}mlp.experts.{}.", b, e), c_.expert_ffn, false, Part::routed_experts);
  }

  const Config& c_;
  std::vector<WeightSpec> specs_;
};

}  // namespace

std::vector<WeightSpec> inventory(const Config& config) { return Builder(config).run(); }

}  // namespace gannet::llama
