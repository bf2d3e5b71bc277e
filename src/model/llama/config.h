// Everything a forward pass of the Llama class needs to know: Llama 2/3, SmolLM2, Qwen 2/2.5/3 (dense and MoE),
// Gemma 3 (text). Read from config.json or from GGUF metadata, checked once here, trusted afterwards.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "files/gguf.h"

namespace gannet::llama {

enum class Family : uint8_t { llama, qwen2, qwen3, qwen3_moe, gemma3 };
std::string_view family_name(Family family);  // "llama", "qwen2", ...

// How the two channels of a rotary pair lie in q and k.
enum class RopePairs : uint8_t {
  half_split,   // channels i and i + D/2; as transformers stores every family
  interleaved,  // channels 2i and 2i + 1; GGUF files of the `llama` architecture, whose converter permutes q and k
                // rows
};

enum class RopeScaling : uint8_t { none, linear, llama3, yarn };

// One rotary table. Angles: fl32(position * f_i), f_i = theta^(-2i/D) after scaling.
//   linear  f_i / factor
//   llama3  wavelength-dependent blend of f_i and f_i / factor between the two frequency factors
//   yarn    ramp between f_i and f_i / factor from beta_fast to beta_slow; cos and sin times `attention_factor`
struct Rope {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  double attention_factor = 1;                       // yarn: resolved, 0.1 ln(factor) + 1 unless the file says
  int64_t original_context = 0;                      // llama3, yarn
};

enum class Activation : uint8_t { silu, gelu_tanh };

struct Config {
  Family family = Family::llama;

  int32_t n_layers = 0;
  int32_t hidden = 0;      // C
  int32_t n_heads = 0;     // H
  int32_t n_kv_heads = 0;  // G; divides H
  int32_t head_dim = 0;    // D; even
  int32_t ffn = 0;         // F of dense layers
  int32_t vocab = 0;       // V
  int32_t max_context = 0;
  double rms_eps = 1e-6;

  RopePairs rope_pairs = RopePairs::half_split;
  Rope rope;                          // full-attention layers
  Rope rope_local;                    // sliding-window layers (equal to `rope` except for Gemma 3)
  std::vector<double> rope_divisors;  // GGUF rope_freqs.weight, D/2 divisors of f_i; empty: none. Filled at load.

  bool qkv_bias = false;  // q, k, v
  bool o_bias = false;    // o
  bool mlp_bias = false;
  bool qk_norm = false;          // RMSNorm over D on every q and k head, before RoPE
  bool tied_embeddings = false;  // the head is the token embedding

  int32_t sliding_window = 0;  // tokens a local layer sees, itself included; 0: none is local
  std::vector<bool> is_local;  // [n_layers] which layers use the window; empty where sliding_window is 0

  double query_scale = 0;      // q . k times this; always set (D^-1/2 unless the family says otherwise)
  float embedding_scale = 1;   // the embedding row times this; Gemma: sqrt(C) in fp32
  bool norm_plus_one = false;  // RMSNorm multiplies by 1 + weight (Gemma in config.json form; GGUF stores the sum)
  bool post_norms = false;     // Gemma: a norm after attention and after the MLP, before the residual is added
  Activation activation = Activation::silu;

  // Mixture of experts; n_experts == 0 for dense models.
  int32_t n_experts = 0;            // E
  int32_t n_experts_per_token = 0;  // K
  int32_t expert_ffn = 0;           // F of one expert
  bool norm_topk_prob = false;      // the K weights (softmax over all E first) are divided by their sum
  std::vector<bool> is_moe;         // [n_layers]; empty for dense models

  int32_t bos_id = -1;           // -1: none
  std::vector<int32_t> eos_ids;  // any of them ends a generation

  int64_t parameters() const;  // embeddings, layers, norms and the head where it is not tied
};

// From a parsed config.json. `name` is the file's name for messages. Fails with bad_file (missing field, broken
// rule) or unsupported (a field whose value Gannet does not do); the message has the field's name and its value.
Result<Config> config_from_json(const Json& json, std::string_view name);

// From GGUF metadata: architectures llama, qwen2, qwen3, qwen3moe, gemma3.
Result<Config> config_from_gguf(const files::Gguf& gguf);

}  // namespace gannet::llama
