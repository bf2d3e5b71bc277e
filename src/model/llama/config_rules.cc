#include "model/llama/config_rules.h"

#include <fmt/format.h>

#include <cmath>

namespace gannet::llama {

std::string_view family_name(Family family) {
  switch (family) {
    case Family::llama:
      return "llama";
    case Family::qwen2:
      return "qwen2";
    case Family::qwen3:
      return "qwen3";
    case Family::qwen3_moe:
      return "qwen3_moe";
    case Family::gemma3:
      return "gemma3";
  }
  return "?";
}

double yarn_attention_factor(double factor) { return factor <= 1 ? 1.0 : 0.1 * std::log(factor) + 1.0; }

std::vector<bool> local_pattern(int32_t n_layers, int32_t period) {
  std::vector<bool> local(static_cast<size_t>(n_layers), true);
  for (int32_t l = period - 1; l < n_layers; l += period) local[static_cast<size_t>(l)] = false;
  return local;
}

Status check_rules(const Config& c, std::string_view name) {
  const auto bad = [&](std::string text) { return Error{Errc::bad_file, fmt::format("{}: {}", name, text)}; };
  if (c.n_heads % c.n_kv_heads != 0)
    return bad(fmt::format("num_attention_heads = {} is no multiple of num_key_value_heads = {}", c.n_heads,
                           c.n_kv_heads));
  if (c.head_dim % 2 != 0) return bad(fmt::format("head_dim = {} is odd", c.head_dim));
  if (int64_t{c.n_heads} * c.head_dim > (1 << 24))
    return bad(fmt::format("{} heads of {} channels are too many", c.n_heads, c.head_dim));
  if (c.n_experts > 0 && c.n_experts_per_token > c.n_experts)
    return bad(
        fmt::format("num_experts_per_tok = {} exceeds num_experts = {}", c.n_experts_per_token, c.n_experts));
  if (!c.rope_divisors.empty() && static_cast<int64_t>(c.rope_divisors.size()) != c.head_dim / 2)
    return bad(
        fmt::format("rope_freqs.weight has {} values for head_dim = {}", c.rope_divisors.size(), c.head_dim));
  for (const Rope* rope : {&c.rope, &c.rope_local}) {
    if (rope->scaling == RopeScaling::llama3 && !(rope->high_freq_factor > rope->low_freq_factor))
      return bad(fmt::format("high_freq_factor = {} does not exceed low_freq_factor = {}", rope->high_freq_factor,
                             rope->low_freq_factor));
    if (rope->scaling == RopeScaling::yarn && !(rope->beta_fast >= rope->beta_slow))
      return bad(fmt::format("beta_fast = {} is below beta_slow = {}", rope->beta_fast, rope->beta_slow));
  }
  if (c.bos_id >= c.vocab)
    return bad(fmt::format("bos_token_id = {} is not below vocab_size = {}", c.bos_id, c.vocab));
  for (const int32_t id : c.eos_ids)
    if (id >= c.vocab) return bad(fmt::format("eos_token_id = {} is not below vocab_size = {}", id, c.vocab));
  return ok();
}

int64_t Config::parameters() const {
  const int64_t q = int64_t{n_heads} * head_dim, kv = int64_t{n_kv_heads} * head_dim, C = hidden;
  int64_t total = int64_t{vocab} * C * (tied_embeddings ? 1 : 2) + C;
  for (int32_t l = 0; l < n_layers; ++l) {
    total += C * (q + 2 * kv) + q * C + (post_norms ? 4 : 2) * C;
    if (qkv_bias) total += q + 2 * kv;
    if (o_bias) total += C;
    if (qk_norm) total += 2 * int64_t{head_dim};
    if (!is_moe.empty() && is_moe[static_cast<size_t>(l)])
      total += n_experts * (C + 3 * C * expert_ffn);
    else
      total += 3 * C * ffn + (mlp_bias ? 2 * int64_t{ffn} + C : 0);
  }
  return total;
}

}  // namespace gannet::llama
