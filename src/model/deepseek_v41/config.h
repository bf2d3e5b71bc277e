// DeepSeek-V4.1: the typed config. Read from config.json (nested text_config / vision_config, or flat, with the
// names of the released file or of the reference implementation), checked against every rule of the architecture,
// trusted afterwards. A value that Gannet cannot honour is refused with its field name; nothing is repaired.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace gannet::deepseek_v41 {

enum class ScoreFunction : uint8_t { sqrt_softplus, softmax, sigmoid };

// YaRN over the compressed-branch rotary table; off unless the config has it.
struct Yarn {
  bool on = false;
  double factor = 1;
  double beta_fast = 32, beta_slow = 1;
  int64_t original_context = 65536;
};

// 2-D rotary ViT with a merger. Absent for text-only checkpoints.
struct VisionConfig {
  int32_t hidden = 1024, n_layers = 32, n_heads = 16, ffn = 2816;
  int32_t patch = 14;  // pixels
  int32_t merge = 3;   // patches per side of one image token
  double rope_theta = 10000;
  int32_t max_image_tokens = 1024;  // whole span, delimiters included
  int64_t min_pixels = 295936;
  std::optional<double> max_wh_ratio;  // none: no limit
};

struct EngramConfig {
  std::vector<int32_t> layers;      // layers with a table, rising; empty: no Engram
  std::vector<int64_t> table_rows;  // one per entry of `layers`
  int64_t vocab_size = 16000000;    // where the prime search starts
  int32_t max_ngram = 4;            // n-grams of 2 .. max_ngram
  int32_t n_heads = 8;              // hashes per n-gram size
  int32_t head_dim = 256;           // channels of one row
  int32_t pad_token = 2;
  int32_t compressed_vocab = 99092;  // must equal the tokenizer's token map (checked by whoever loads it)

  int32_t n_columns() const { return (max_ngram - 1) * n_heads; }  // rows fetched per token and layer
  int32_t input_dim() const { return n_columns() * head_dim; }     // columns of engram.wkv
};

// The draft model.
struct DsparkConfig {
  int32_t n_stages = 0;  // num_nextn_predict_layers; 0: no draft model
  int32_t block = 5;     // tokens drafted at once
  int32_t noise_token = 128799;
  std::vector<int32_t> target_layers;  // backbone layers tapped
  int32_t markov_rank = 256;
  int32_t n_experts = 128, n_experts_per_token = 3;
};

// How the weights are stored. Without quantization_config: everything BF16 or F32.
struct QuantConfig {
  bool fp8 = false;  // dense matrices F8_E4M3 with one scale per block_rows x block_cols
  int32_t block_rows = 32, block_cols = 32;
  bool fp4_experts = false;  // routed experts MXFP4; else as the dense matrices
};

struct Config {
  // Shape letters of the glossary: C hidden, H heads, D head_dim, V vocab, E experts, K chosen, F ffn, S streams.
  int32_t vocab = 129280;  // V
  int32_t hidden = 5120;   // C
  int32_t n_layers = 40;   // backbone; draft stages are extra
  int32_t n_heads = 64;    // H
  int32_t head_dim = 512;  // D, also the width of the one shared K = V vector
  int32_t rope_dim = 64;   // rotary channels: the last ones of every vector, adjacent pairs
  int32_t q_rank = 1280;
  int32_t o_groups = 8, o_rank = 1024;
  int32_t window = 128;  // tokens, the query's own included
  int32_t max_context = 1048576;
  double rms_eps = 1e-20;
  int32_t bos_id = 0, eos_id = 1, pad_id = 2;
  int32_t image_token_id = 129264;

  // Rotary tables: layers with ratio 0 (and draft stages) use rope_theta without YaRN, the others the second pair.
  double rope_theta = 10000;
  double compress_rope_theta = 160000;
  Yarn yarn;

  // Compressed attention.
  std::vector<int32_t> ratios;         // [n_layers + n_stages] 0, 1 or 2..; draft stages are 0
  std::vector<int32_t> kv_sources;     // layers that own a compressor, rising
  std::vector<int32_t> index_sources;  // layers that run an indexer, rising; contains kv_sources
  int32_t candidate_source = 20;       // -1: no candidate level
  int32_t candidate_blocks = 2048, candidate_block_size = 8;
  int32_t index_heads = 32, index_head_dim = 128, index_topk = 512;

  // Mixture of experts.
  int32_t ffn = 2304;       // F, routed and shared
  int32_t n_experts = 384;  // E
  int32_t n_shared_experts = 1;
  int32_t n_experts_per_token = 6;  // K
  ScoreFunction score = ScoreFunction::sqrt_softplus;
  bool norm_topk_prob = true;
  double routed_scaling = 1.5;
  double gate_temp = 1.0;      // divides router logits
  double swiglu_limit = 10.0;  // <= 0: no clamps

  // Hyper-connections.
  int32_t n_streams = 4;  // S
  int32_t sinkhorn_iters = 20;
  double hc_eps = 1e-6;

  EngramConfig engram;
  DsparkConfig dspark;
  QuantConfig quant;
  std::optional<VisionConfig> vision;

  // The nearest source at or below `layer`, whose ratio is > 0.
  int32_t kv_source(int32_t layer) const;
  int32_t index_source(int32_t layer) const;
  bool is_kv_source(int32_t layer) const;
  bool is_index_source(int32_t layer) const;
  int32_t engram_slot(int32_t layer) const;  // index into engram.layers, or -1
  // First layer of the decoder half: the last kv source, whose rows all later layers read. n_layers without a
  // source.
  int32_t first_decoder_layer() const;
  int32_t hc_mix() const { return (2 + n_streams) * n_streams; }  // rows of hc_*_fn
};

// From a parsed config.json; `name` is the file's name for messages. Fails with bad_file (a broken rule) or
// unsupported; the message has the field and its value.
Result<Config> config_from_json(const Json& json, std::string_view name);

// The table sizes that the hash scheme asks for: for every Engram layer the sum of its primes. Each prime is the
// smallest one above the last taken, from vocab_size - 1 on, never repeated across layers, n-gram sizes and heads.
std::vector<int64_t> engram_table_rows(const EngramConfig& engram);

}  // namespace gannet::deepseek_v41
