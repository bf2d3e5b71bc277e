// Small random V4.1 models: any legal mix of ratios, sources, candidates, Engram layers and sizes.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <random>
#include <utility>

#include "model/deepseek_v41/config_rules.h"
#include "model/deepseek_v41/inventory.h"
#include "model/deepseek_v41/model.h"
#include "weights/checkpoint.h"

namespace gannet::deepseek_v41::test {

using Random = std::mt19937_64;
// Uniform in [low, high].
inline int32_t pick(Random& random, int32_t low, int32_t high) {
  return low + static_cast<int32_t>(random() % static_cast<uint64_t>(high - low + 1));
}

inline void random_schedule(Random& random, Config& c) {
  c.n_layers = pick(random, 3, 7);
  int32_t l = pick(random, 0, 2);
  c.ratios.assign(static_cast<size_t>(l), 0);
  while (l < c.n_layers) {  // runs that share one source
    const int32_t ratio = pick(random, 1, 2), length = std::min(pick(random, 1, 4), c.n_layers - l);
    c.kv_sources.push_back(l);
    for (int32_t i = 0; i < length; ++i, ++l) {
      c.ratios.push_back(ratio);
      if (i == 0 || pick(random, 0, 2) == 0) c.index_sources.push_back(l);
    }
  }
  c.candidate_source = -1;
  if (!c.kv_sources.empty() && pick(random, 0, 3) != 0) c.candidate_source = c.kv_sources.back();
}

inline Config random_config(Random& random) {
  Config c;
  c.vocab = 40;
  c.hidden = 32;
  c.n_streams = pick(random, 2, 4);
  c.n_heads = pick(random, 1, 2) * 2;
  c.head_dim = 32;
  c.rope_dim = pick(random, 0, 1) == 0 ? 8 : 16;
  c.q_rank = 32;
  c.o_groups = pick(random, 1, 2);
  c.o_rank = 32;
  c.window = pick(random, 1, 7);
  c.ffn = 32;
  c.n_experts = pick(random, 2, 5);
  c.n_experts_per_token = pick(random, 1, 2);
  c.swiglu_limit = pick(random, 0, 1) == 0 ? 0.5 : 10;
  c.sinkhorn_iters = pick(random, 1, 4);
  c.image_token_id = 39;
  c.yarn.on = pick(random, 0, 1) == 0;
  c.yarn.factor = 4;
  c.yarn.original_context = 64;
  random_schedule(random, c);
  c.index_heads = pick(random, 1, 3);
  c.index_head_dim = 32;
  c.index_topk = pick(random, 1, 9);
  c.candidate_block_size = pick(random, 1, 4);
  c.candidate_blocks = pick(random, 1, 5);
  c.engram.layers.clear();
  for (int32_t l = 0; l < c.n_layers; ++l)
    if (pick(random, 0, 3) == 0) c.engram.layers.push_back(l);
  c.engram.vocab_size = 16;
  c.engram.max_ngram = pick(random, 2, 4);
  c.engram.n_heads = pick(random, 1, 2);
  c.engram.head_dim = 32;
  c.engram.pad_token = 2;
  c.engram.compressed_vocab = 23;
  c.engram.table_rows = engram_table_rows(c.engram);
  c.dspark.n_stages = pick(random, 0, 1);
  c.ratios.resize(static_cast<size_t>(c.n_layers + c.dspark.n_stages), 0);
  for (int32_t l = std::max(0, c.n_layers - 2); l < c.n_layers; ++l) c.dspark.target_layers.push_back(l);
  c.dspark.noise_token = 38;
  c.dspark.n_experts = 2;
  c.dspark.n_experts_per_token = 1;
  c.dspark.markov_rank = 32;
  c.quant = {true, 32, 32, true};
  return c;
}

struct RandomModel {
  Config config;
  std::unique_ptr<weights::Checkpoint> checkpoint;
  std::unique_ptr<DeepseekV41> full, trimmed;  // every row in every layer; as in service
};

inline RandomModel random_model(Random& random, Numerics numerics) {
  RandomModel m;
  m.config = random_config(random);
  const Status legal = check_rules(m.config, "random config");
  GANNET_CHECK(legal.has_value(), std::string_view(legal.error().message));
  auto checkpoint =
      weights::Checkpoint::synthetic("deepseek_v41", inventory(m.config), {random(), int64_t{1} << 20});
  GANNET_CHECK(checkpoint.has_value(), std::string_view(checkpoint.error().message));
  m.checkpoint = std::make_unique<weights::Checkpoint>(std::move(*checkpoint));
  std::vector<int32_t> token_map;
  for (int32_t id = 0; id < m.config.vocab; ++id) token_map.push_back(id % m.config.engram.compressed_vocab);
  for (const bool trim : {false, true}) {
    Options options;
    options.numerics = numerics;
    options.trim_decoder = trim;
    options.n_threads = 3;
    auto model = DeepseekV41::load(m.config, *m.checkpoint, token_map, options, this_machine());
    GANNET_CHECK(model.has_value(), std::string_view(model.error().message));
    (trim ? m.trimmed : m.full) = std::move(*model);
  }
  return m;
}

}  // namespace gannet::deepseek_v41::test
