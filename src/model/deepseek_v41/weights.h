// Weights of one layer, found in a checkpoint by their released names, with the shapes that the config asks for.
// Matrices stay in the checkpoint's memory; vectors are copied as fp32.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/moe_experts.h"
#include "model/deepseek_v41/config.h"
#include "tensor/weight.h"
#include "weights/checkpoint.h"

namespace gannet::deepseek_v41 {

// One site (attention or experts) of a layer: its hyper-connection and the norm in front.
struct SiteWeights {
  WeightView fn;                   // [(2 + S) S, S C]
  std::vector<float> base, scale;  // [(2 + S) S], [3]
  std::vector<float> norm;         // [C]
};

struct CompressorWeights {    // of kv sources
  WeightView wkv, wgate;      // [D, C]; wgate for ratio > 1
  std::vector<float> norm;    // [D]
  WeightView wk;              // [index D, D]
  std::vector<float> k_norm;  // [index D]
};

struct IndexerWeights {     // of index sources
  WeightView wq_b;          // [index H * index D, q rank]
  WeightView weights_proj;  // [index H, C]
};

struct AttentionWeights {
  WeightView wq_a, wq_b, wkv, wo_a, wo_b;
  std::vector<float> q_norm, kv_norm, sink;
  std::optional<CompressorWeights> compressor;
  std::optional<IndexerWeights> indexer;
};

struct MoeWeights {
  WeightView gate;                // [E, C]
  std::vector<float> bias;        // [E]
  std::vector<float> bias_image;  // [E], or empty: as bias
  std::vector<ExpertWeights> experts;
  ExpertWeights shared;
};

struct EngramWeights {
  WeightView table;         // [rows, head dim]
  WeightView wkv;           // [(S + 1) C, columns * head dim]
  std::vector<float> q, k;  // [S C]
};

struct LayerWeights {
  SiteWeights attention_site, moe_site;
  AttentionWeights attention;
  MoeWeights moe;
  std::optional<EngramWeights> engram;
};

struct TopWeights {
  WeightView embed, head;   // [V, C]
  std::vector<float> norm;  // [C]
};

// bad_file with the tensor's name when one is missing or has another shape.
Result<LayerWeights> load_layer(const weights::Checkpoint& checkpoint, const Config& config, int32_t layer);
Result<TopWeights> load_top(const weights::Checkpoint& checkpoint, const Config& config);

}  // namespace gannet::deepseek_v41
