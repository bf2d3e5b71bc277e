#include "model/deepseek_v41/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace gannet::deepseek_v41 {
namespace {

constexpr int32_t kBlockTokens = 128;
constexpr int32_t kLeastDraft = 5;  // gamma where the model has no draft stages: n-gram drafts want room too

int add_ring(kv::KvSpec& spec, std::string name, int32_t capacity, int32_t width, RowFormat format) {
  spec.rings.push_back({std::move(name), capacity, width, format});
  return static_cast<int>(spec.rings.size()) - 1;
}

int add_plane(kv::KvSpec& spec, std::string name, int32_t ratio, int32_t width, RowFormat format) {
  spec.planes.push_back({std::move(name), ratio, width, format});
  return static_cast<int>(spec.planes.size()) - 1;
}

}  // namespace

kv::KvSpec cache_spec(const Config& config, const Precision& precision, CacheMap& map) {
  kv::KvSpec spec;
  const auto n_layers = static_cast<size_t>(config.n_layers);
  map = CacheMap{};
  map.pending.assign(n_layers, -1);
  map.compressed.assign(n_layers, -1);
  map.keys.assign(n_layers, -1);
  const int32_t undo = 2 * (std::max(config.dspark.n_stages > 0 ? config.dspark.block : 0, kLeastDraft) + 1);

  int32_t multiple = 1;
  for (int32_t l = 0; l < config.n_layers; ++l)
    map.window.push_back(add_ring(spec, fmt::format("layers.{}.window", l), config.window + undo, config.head_dim,
                                  precision.window()));
  for (int32_t l = 0; l < config.n_layers; ++l) {
    const int32_t ratio = config.ratios[static_cast<size_t>(l)];
    const auto at = static_cast<size_t>(l);
    if (ratio == 0) continue;
    multiple = std::lcm(multiple, ratio);
    if (!config.is_kv_source(l)) {
      map.compressed[at] = map.compressed[static_cast<size_t>(config.kv_source(l))];
      map.keys[at] = map.keys[static_cast<size_t>(config.kv_source(l))];
      continue;
    }
    map.compressed[at] =
        add_plane(spec, fmt::format("layers.{}.compressed", l), ratio, config.head_dim, precision.compressed());
    map.keys[at] = add_plane(spec, fmt::format("layers.{}.index_keys", l), ratio, config.index_head_dim,
                             precision.index_key());
    if (ratio > 1)
      map.pending[at] = add_ring(spec, fmt::format("layers.{}.pending", l), ratio - 1 + undo, 2 * config.head_dim,
                                 RowFormat::f32);
  }
  if (!config.engram.layers.empty())
    map.engram_ids = add_ring(spec, "engram.ids", config.engram.max_ngram - 1 + undo, 1, RowFormat::i32);
  for (int32_t m = 0; m < config.dspark.n_stages; ++m)
    map.draft.push_back(
        add_ring(spec, fmt::format("mtp.{}.window", m), config.window + undo, config.head_dim, precision.window()));
  spec.block_tokens = (kBlockTokens + multiple - 1) / multiple * multiple;
  return spec;
}

}  // namespace gannet::deepseek_v41
