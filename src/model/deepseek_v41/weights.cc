#include "model/deepseek_v41/weights.h"

#include <fmt/format.h>

namespace gannet::deepseek_v41 {
namespace {

using weights::Checkpoint;

// Reads weights under a name prefix.
class Reader {
 public:
  Reader(const Checkpoint& checkpoint, std::string prefix) : checkpoint_(checkpoint), prefix_(std::move(prefix)) {}

  Status matrix(WeightView& to, std::string_view name, int64_t out, int64_t in) const {
    GANNET_ASSIGN(to, checkpoint_.matrix(prefix_ + std::string(name), out, in));
    return ok();
  }
  Status vector(std::vector<float>& to, std::string_view name, int64_t n) const {
    GANNET_ASSIGN(to, checkpoint_.floats(prefix_ + std::string(name), n));
    return ok();
  }
  bool has(std::string_view name) const { return checkpoint_.has(prefix_ + std::string(name)); }

 private:
  const Checkpoint& checkpoint_;
  std::string prefix_;
};

Status read_site(const Reader& in, const Config& c, std::string_view site, SiteWeights& to) {
  GANNET_TRY(in.matrix(to.fn, fmt::format("hc_{}_fn", site), c.hc_mix(), int64_t{c.n_streams} * c.hidden));
  GANNET_TRY(in.vector(to.base, fmt::format("hc_{}_base", site), c.hc_mix()));
  GANNET_TRY(in.vector(to.scale, fmt::format("hc_{}_scale", site), 3));
  return in.vector(to.norm, fmt::format("{}_norm.weight", site), c.hidden);
}

Status read_attention(const Reader& in, const Config& c, int32_t layer, AttentionWeights& to) {
  const int64_t C = c.hidden, D = c.head_dim, qk = int64_t{c.n_heads} * D;
  GANNET_TRY(in.matrix(to.wq_a, "attn.wq_a.weight", c.q_rank, C));
  GANNET_TRY(in.matrix(to.wq_b, "attn.wq_b.weight", qk, c.q_rank));
  GANNET_TRY(in.matrix(to.wkv, "attn.wkv.weight", D, C));
  GANNET_TRY(in.matrix(to.wo_a, "attn.wo_a.weight", int64_t{c.o_groups} * c.o_rank, qk / c.o_groups));
  GANNET_TRY(in.matrix(to.wo_b, "attn.wo_b.weight", C, int64_t{c.o_groups} * c.o_rank));
  GANNET_TRY(in.vector(to.q_norm, "attn.q_norm.weight", c.q_rank));
  GANNET_TRY(in.vector(to.kv_norm, "attn.kv_norm.weight", D));
  GANNET_TRY(in.vector(to.sink, "attn.attn_sink", c.n_heads));
  if (c.is_kv_source(layer)) {
    CompressorWeights& w = to.compressor.emplace();
    GANNET_TRY(in.matrix(w.wkv, "attn.compressor.wkv.weight", D, C));
    if (c.ratios[static_cast<size_t>(layer)] > 1)
      GANNET_TRY(in.matrix(w.wgate, "attn.compressor.wgate.weight", D, C));
    GANNET_TRY(in.vector(w.norm, "attn.compressor.norm.weight", D));
    GANNET_TRY(in.matrix(w.wk, "attn.indexer.wk.weight", c.index_head_dim, D));
    GANNET_TRY(in.vector(w.k_norm, "attn.indexer.k_norm.weight", c.index_head_dim));
  }
  if (c.is_index_source(layer)) {
    IndexerWeights& w = to.indexer.emplace();
    GANNET_TRY(in.matrix(w.wq_b, "attn.indexer.wq_b.weight", int64_t{c.index_heads} * c.index_head_dim, c.q_rank));
    GANNET_TRY(in.matrix(w.weights_proj, "attn.indexer.weights_proj.weight", c.index_heads, C));
  }
  return ok();
}

Status read_expert(const Reader& in, const Config& c, const std::string& prefix, ExpertWeights& to) {
  GANNET_TRY(in.matrix(to.w1, prefix + "w1.weight", c.ffn, c.hidden));
  GANNET_TRY(in.matrix(to.w3, prefix + "w3.weight", c.ffn, c.hidden));
  return in.matrix(to.w2, prefix + "w2.weight", c.hidden, c.ffn);
}

Status read_moe(const Reader& in, const Config& c, MoeWeights& to) {
  GANNET_TRY(in.matrix(to.gate, "ffn.gate.weight", c.n_experts, c.hidden));
  GANNET_TRY(in.vector(to.bias, "ffn.gate.bias", c.n_experts));
  if (in.has("ffn.gate.bias_vl")) GANNET_TRY(in.vector(to.bias_image, "ffn.gate.bias_vl", c.n_experts));
  to.experts.resize(static_cast<size_t>(c.n_experts));
  for (int32_t e = 0; e < c.n_experts; ++e)
    GANNET_TRY(read_expert(in, c, fmt::format("ffn.experts.{}.", e), to.experts[static_cast<size_t>(e)]));
  const WeightFormat format = to.experts.front().w1.format;
  for (const ExpertWeights& e : to.experts)
    for (const WeightView* w : {&e.w1, &e.w3, &e.w2})
      if (w->format != format)
        return Error{Errc::unsupported,
                     fmt::format("routed experts are stored as {} and as {}: one format is supported",
                                 weight_format_info(format).name, weight_format_info(w->format).name)};
  return read_expert(in, c, "ffn.shared_experts.", to.shared);
}

Status read_engram(const Reader& in, const Config& c, int32_t slot, EngramWeights& to) {
  const int64_t streams = int64_t{c.n_streams} * c.hidden;
  GANNET_TRY(in.matrix(to.table, "engram.embed.weight", c.engram.table_rows[static_cast<size_t>(slot)],
                       c.engram.head_dim));
  GANNET_TRY(in.matrix(to.wkv, "engram.wkv.weight", streams + c.hidden, c.engram.input_dim()));
  GANNET_TRY(in.vector(to.q, "engram.q_weight", streams));
  return in.vector(to.k, "engram.k_weight", streams);
}

}  // namespace

Result<LayerWeights> load_layer(const Checkpoint& checkpoint, const Config& config, int32_t layer) {
  const Reader in(checkpoint, fmt::format("layers.{}.", layer));
  LayerWeights w;
  GANNET_TRY(read_site(in, config, "attn", w.attention_site));
  GANNET_TRY(read_site(in, config, "ffn", w.moe_site));
  GANNET_TRY(read_attention(in, config, layer, w.attention));
  GANNET_TRY(read_moe(in, config, w.moe));
  if (const int32_t slot = config.engram_slot(layer); slot >= 0)
    GANNET_TRY(read_engram(in, config, slot, w.engram.emplace()));
  return w;
}

Result<TopWeights> load_top(const Checkpoint& checkpoint, const Config& config) {
  const Reader in(checkpoint, "");
  TopWeights w;
  GANNET_TRY(in.matrix(w.embed, "embed.weight", config.vocab, config.hidden));
  GANNET_TRY(in.matrix(w.head, "head.weight", config.vocab, config.hidden));
  GANNET_TRY(in.vector(w.norm, "norm.weight", config.hidden));
  return w;
}

}  // namespace gannet::deepseek_v41
