#include "model/deepseek_v41/config_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "base/check.h"

namespace gannet::deepseek_v41 {
namespace {

const std::vector<int32_t> kReleasedKv = {2, 8, 14, 20};
const std::vector<int32_t> kReleasedIndex = {2, 8, 14, 20, 24, 28, 32, 36};

// The largest listed id <= layer, or -1.
int32_t nearest(const std::vector<int32_t>& sources, int32_t layer) {
  int32_t found = -1;
  for (const int32_t s : sources)
    if (s <= layer) found = std::max(found, s);
  return found;
}

bool contains(const std::vector<int32_t>& list, int32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool strictly_rising(const std::vector<int32_t>& list) {
  return std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) == list.end();
}

uint64_t power_mod(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1;
  for (base %= modulus; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = result * base % modulus;
    base = base * base % modulus;
  }
  return result;
}

// Miller-Rabin with bases 2, 7, 61: exact below 4,759,123,141. n < 2^32.
bool is_prime(uint64_t n) {
  if (n < 2) return false;
  for (const uint64_t p : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 61})
    if (n % p == 0) return n == p;
  uint64_t d = n - 1;
  int twos = 0;
  while (d % 2 == 0) {
    d /= 2;
    ++twos;
  }
  for (const uint64_t base : {2, 7, 61}) {
    uint64_t x = power_mod(base, d, n);
    if (x == 1 || x == n - 1) continue;
    bool witness = true;
    for (int i = 1; i < twos && witness; ++i) {
      x = x * x % n;
      witness = x != n - 1;
    }
    if (witness) return false;
  }
  return true;
}

class Rules {
 public:
  Rules(const Config& config, std::string_view name) : c_(config), name_(name) {}

  Status run() const {
    GANNET_TRY(shapes());
    GANNET_TRY(sources());
    GANNET_TRY(layers());
    GANNET_TRY(candidates());
    GANNET_TRY(engram());
    GANNET_TRY(dspark());
    GANNET_TRY(vision());
    return tokens();
  }

 private:
  template <class... Args>
  Error bad(fmt::format_string<Args...> format, Args&&... args) const {
    return {Errc::bad_file, fmt::format("{}: {}", name_, fmt::format(format, std::forward<Args>(args)...))};
  }

  Status multiple_of_32(std::string_view field, int64_t value) const {
    if (value % 32 != 0) return bad("{} = {} is no multiple of the quantisation block 32", field, value);
    return ok();
  }

  Status shapes() const {
    if (c_.n_heads % c_.o_groups != 0)
      return bad("num_attention_heads = {} is no multiple of o_groups = {}", c_.n_heads, c_.o_groups);
    if (c_.rope_dim % 2 != 0) return bad("qk_rope_head_dim = {} is odd", c_.rope_dim);
    if (c_.rope_dim > c_.head_dim)
      return bad("qk_rope_head_dim = {} exceeds head_dim = {}", c_.rope_dim, c_.head_dim);
    if (c_.rope_dim > c_.index_head_dim)
      return bad("qk_rope_head_dim = {} exceeds index_head_dim = {}", c_.rope_dim, c_.index_head_dim);
    for (const auto& [field, wide] :
         {std::pair{"num_attention_heads * head_dim", int64_t{c_.n_heads} * c_.head_dim},
          std::pair{"o_groups * o_lora_rank", int64_t{c_.o_groups} * c_.o_rank},
          std::pair{"hc_mult * hidden_size", int64_t{c_.n_streams} * c_.hidden},
          std::pair{"index_n_heads * index_head_dim", int64_t{c_.index_heads} * c_.index_head_dim},
          std::pair{"engram columns * engram_head_dim", int64_t{c_.engram.n_columns()} * c_.engram.head_dim}})
      if (wide > (1 << 24)) return bad("{} = {} is larger than 2^24", field, wide);
    // The caches are quantised per 32 channels whatever the weights are.
    GANNET_TRY(multiple_of_32("head_dim", c_.head_dim));
    GANNET_TRY(multiple_of_32("index_head_dim", c_.index_head_dim));
    if (c_.n_experts_per_token > c_.n_experts)
      return bad("num_experts_per_tok = {} exceeds n_routed_experts = {}", c_.n_experts_per_token, c_.n_experts);
    if (!c_.quant.fp8) return ok();
    GANNET_TRY(multiple_of_32("hidden_size", c_.hidden));
    GANNET_TRY(multiple_of_32("q_lora_rank", c_.q_rank));
    GANNET_TRY(multiple_of_32("o_lora_rank", c_.o_rank));
    GANNET_TRY(multiple_of_32("moe_intermediate_size", c_.ffn));
    return c_.engram.layers.empty() ? ok() : multiple_of_32("engram_head_dim", c_.engram.head_dim);
  }

  Status sources() const {
    if (!strictly_rising(c_.kv_sources)) return bad("kv_source_layer_ids = {} does not rise", c_.kv_sources);
    if (!strictly_rising(c_.index_sources))
      return bad("index_source_layer_ids = {} does not rise", c_.index_sources);
    for (const int32_t l : c_.kv_sources) {
      if (c_.ratios[static_cast<size_t>(l)] == 0)
        return bad("kv_source_layer_ids has layer {}, whose compress_ratios entry is 0", l);
      if (!contains(c_.index_sources, l))
        return bad("kv_source_layer_ids has layer {}, which index_source_layer_ids lacks", l);
    }
    for (const int32_t l : c_.index_sources)
      if (c_.ratios[static_cast<size_t>(l)] == 0)
        return bad("index_source_layer_ids has layer {}, whose compress_ratios entry is 0", l);
    return ok();
  }

  Status layers() const {
    for (int32_t l = 0; l < static_cast<int32_t>(c_.ratios.size()); ++l) {
      const int32_t ratio = c_.ratios[static_cast<size_t>(l)];
      if (l >= c_.n_layers && ratio != 0)
        return bad("compress_ratios[{}] = {} belongs to a draft layer and must be 0", l, ratio);
      if (ratio > 2)
        return Error{
            Errc::unsupported,
            fmt::format("{}: compress_ratios[{}] = {} is not supported (0, 1 and 2 are)", name_, l, ratio)};
      if (ratio == 0) continue;
      const int32_t kv = nearest(c_.kv_sources, l), index = nearest(c_.index_sources, l);
      if (kv < 0)
        return bad("layer {} has compress_ratios {} but no kv_source_layer_ids entry at or below it", l, ratio);
      if (c_.ratios[static_cast<size_t>(kv)] != ratio)
        return bad("layer {} has compress_ratios {}, its kv source {} has {}", l, ratio, kv,
                   c_.ratios[static_cast<size_t>(kv)]);
      if (index < kv) return bad("layer {} has no index_source_layer_ids entry from its kv source {} on", l, kv);
    }
    return ok();
  }

  Status candidates() const {
    const int32_t source = c_.candidate_source;
    if (source < 0) return ok();
    if (!contains(c_.index_sources, source))
      return bad("candidate_source_layer_id = {} is not in index_source_layer_ids", source);
    for (const int32_t l : c_.index_sources)
      if (l > source && nearest(c_.kv_sources, l) != nearest(c_.kv_sources, source))
        return bad(
            "candidate_source_layer_id = {} picks rows of layer {}, but the later index source {} reads those of "
            "layer {}",
            source, nearest(c_.kv_sources, source), l, nearest(c_.kv_sources, l));
    return ok();
  }

  Status engram() const {
    const EngramConfig& e = c_.engram;
    if (!strictly_rising(e.layers)) return bad("engram_layer_ids = {} does not rise", e.layers);
    if (e.table_rows.size() != e.layers.size() && !e.layers.empty())
      return bad("engram_num_embeddings has {} entries, engram_layer_ids {}", e.table_rows.size(), e.layers.size());
    if (e.layers.empty()) return ok();
    const std::vector<int64_t> want = engram_table_rows(e);
    for (size_t i = 0; i < want.size(); ++i) {
      if (e.table_rows[i] != want[i])
        return bad("engram_num_embeddings[{}] = {}, the primes of layer {} sum to {}", i, e.table_rows[i],
                   e.layers[i], want[i]);
      if (want[i] > INT32_MAX)
        return Error{Errc::unsupported,
                     fmt::format("{}: engram_num_embeddings[{}] = {} is larger than 2^31 - 1", name_, i, want[i])};
    }
    return ok();
  }

  Status dspark() const {
    const DsparkConfig& d = c_.dspark;
    if (d.n_stages == 0) return ok();
    if (d.target_layers.empty() || !strictly_rising(d.target_layers))
      return bad("dspark_target_layer_ids = {} is empty or does not rise", d.target_layers);
    if (d.n_experts_per_token > d.n_experts)
      return bad("dspark_num_experts_per_tok = {} exceeds dspark_n_routed_experts = {}", d.n_experts_per_token,
                 d.n_experts);
    if (d.noise_token >= c_.vocab)
      return bad("dspark_noise_token_id = {} is not below vocab_size = {}", d.noise_token, c_.vocab);
    return ok();
  }

  Status vision() const {
    if (!c_.vision) return ok();
    const VisionConfig& v = *c_.vision;
    if (v.hidden % v.n_heads != 0)
      return bad("vision_config: hidden_size = {} is no multiple of num_attention_heads = {}", v.hidden, v.n_heads);
    if (v.hidden / v.n_heads % 4 != 0)
      return bad("vision_config: a head of {} channels cannot hold two rotary axes", v.hidden / v.n_heads);
    if (c_.image_token_id >= c_.vocab)
      return bad("image_token_id = {} is not below vocab_size = {}", c_.image_token_id, c_.vocab);
    return ok();
  }

  Status tokens() const {
    for (const auto& [field, id] : {std::pair{"bos_token_id", c_.bos_id}, std::pair{"eos_token_id", c_.eos_id},
                                    std::pair{"pad_token_id", c_.pad_id}})
      if (id >= c_.vocab) return bad("{} = {} is not below vocab_size = {}", field, id, c_.vocab);
    if (!c_.engram.layers.empty() && c_.engram.pad_token >= c_.vocab)
      return bad("engram_pad_token_id = {} is not below vocab_size = {}", c_.engram.pad_token, c_.vocab);
    return ok();
  }

  const Config& c_;
  std::string_view name_;
};

}  // namespace

std::vector<int32_t> default_ratios(int32_t n_layers) {
  const int32_t window_only = std::min(2, n_layers), twos = n_layers == 40 ? 18 : (n_layers - window_only + 1) / 2;
  std::vector<int32_t> ratios(static_cast<size_t>(window_only), 0);
  ratios.insert(ratios.end(), static_cast<size_t>(twos), 2);
  ratios.resize(static_cast<size_t>(n_layers), 1);
  return ratios;
}

std::vector<int32_t> default_kv_sources(const Config& config) {
  const std::vector<int32_t> backbone(config.ratios.begin(), config.ratios.begin() + config.n_layers);
  if (config.n_layers == 40 && backbone == default_ratios(40)) return kReleasedKv;
  std::vector<int32_t> sources;
  for (int32_t l = 0; l < config.n_layers; ++l) {
    const auto i = static_cast<size_t>(l);
    if (backbone[i] > 0 && (l == 0 || backbone[i - 1] != backbone[i])) sources.push_back(l);
  }
  return sources;
}

std::vector<int32_t> default_index_sources(const Config& config) {
  return config.kv_sources == kReleasedKv && config.n_layers > kReleasedIndex.back() ? kReleasedIndex
                                                                                     : config.kv_sources;
}

std::vector<int64_t> engram_table_rows(const EngramConfig& engram) {
  std::vector<int64_t> rows;
  std::unordered_set<uint64_t> seen;
  for (size_t layer = 0; layer < engram.layers.size(); ++layer) {
    int64_t sum = 0;
    for (int32_t n = 2; n <= engram.max_ngram; ++n) {
      auto current = static_cast<uint64_t>(engram.vocab_size - 1);
      for (int32_t head = 0; head < engram.n_heads; ++head) {
        do ++current;
        while (!is_prime(current) || seen.contains(current));
        seen.insert(current);
        sum += static_cast<int64_t>(current);
      }
    }
    rows.push_back(sum);
  }
  return rows;
}

Status check_rules(const Config& config, std::string_view name) { return Rules(config, name).run(); }

int32_t Config::kv_source(int32_t layer) const {
  const int32_t source = nearest(kv_sources, layer);
  GANNET_CHECK(source >= 0, "layer {} has no kv source", layer);
  return source;
}
int32_t Config::index_source(int32_t layer) const {
  const int32_t source = nearest(index_sources, layer);
  GANNET_CHECK(source >= 0, "layer {} has no index source", layer);
  return source;
}
bool Config::is_kv_source(int32_t layer) const { return contains(kv_sources, layer); }
bool Config::is_index_source(int32_t layer) const { return contains(index_sources, layer); }
int32_t Config::engram_slot(int32_t layer) const {
  const auto it = std::find(engram.layers.begin(), engram.layers.end(), layer);
  return it == engram.layers.end() ? -1 : static_cast<int32_t>(it - engram.layers.begin());
}
int32_t Config::first_decoder_layer() const { return kv_sources.empty() ? n_layers : kv_sources.back(); }

}  // namespace gannet::deepseek_v41
