#include "model/deepseek_v41/inventory.h"

#include <fmt/format.h>

#include <algorithm>

namespace gannet::deepseek_v41 {
namespace {

using weights::Fill;
using weights::Part;
using weights::Stored;
using weights::WeightSpec;

class Builder {
 public:
  Builder(const Config& config, const InventoryOptions& options) : c_(config), o_(options) {}

  std::vector<WeightSpec> run() {
    add("embed.weight", c_.vocab, c_.hidden, Stored::bf16, Part::embedding).fill = Fill::embedding;
    norm("norm.weight", c_.hidden, Part::norms);
    add("head.weight", c_.vocab, c_.hidden, Stored::bf16, Part::head);
    const int32_t end = o_.n_layers < 0 ? c_.n_layers : std::min(c_.n_layers, o_.first_layer + o_.n_layers);
    for (int32_t l = o_.first_layer; l < end; ++l) layer(l);
    if (o_.draft && c_.dspark.n_stages > 0) draft();
    if (o_.vision && c_.vision) vision(*c_.vision);
    return std::move(specs_);
  }

 private:
  Stored dense() const { return c_.quant.fp8 ? Stored::fp8_32x32 : Stored::bf16; }
  Stored expert() const { return c_.quant.fp4_experts ? Stored::mxfp4_1x32 : dense(); }

  WeightSpec& add(std::string name, int64_t out, int64_t in, Stored stored, Part part) {
    WeightSpec& s = specs_.emplace_back();
    s.name = std::move(name);
    s.out = out;
    s.in = in;
    s.stored = stored;
    s.part = part;
    return s;
  }
  WeightSpec& vector(std::string name, int64_t n, Stored stored, Part part, Fill fill) {
    WeightSpec& s = add(std::move(name), 1, n, stored, part);
    s.rank = 1;
    s.fill = fill;
    return s;
  }
  void norm(std::string name, int64_t n, Part part) { vector(std::move(name), n, Stored::bf16, part, Fill::norm); }

  // A part of a block: its own in the backbone, `draft` in draft stages.
  Part part(Part own, bool is_draft) const { return is_draft ? Part::draft : own; }

  // What backbone layers and draft stages share. `b` ends in a dot.
  void block(const std::string& b, int32_t n_experts, bool is_draft) {
    const int64_t C = c_.hidden, S = c_.n_streams, qk = int64_t{c_.n_heads} * c_.head_dim;
    const Part attention = part(Part::attention, is_draft), hyper = part(Part::hyper_connections, is_draft);
    norm(b + "attn_norm.weight", C, part(Part::norms, is_draft));
    norm(b + "ffn_norm.weight", C, part(Part::norms, is_draft));
    for (const std::string_view site : {"attn", "ffn"}) {
      add(fmt::format("{}hc_{}_fn", b, site), c_.hc_mix(), S * C, Stored::f32, hyper);
      vector(fmt::format("{}hc_{}_base", b, site), c_.hc_mix(), Stored::f32, hyper, Fill::offset);
      vector(fmt::format("{}hc_{}_scale", b, site), 3, Stored::f32, hyper, Fill::norm);
    }
    vector(b + "attn.attn_sink", c_.n_heads, Stored::f32, attention, Fill::offset);
    add(b + "attn.wq_a.weight", c_.q_rank, C, dense(), attention);
    norm(b + "attn.q_norm.weight", c_.q_rank, attention);
    add(b + "attn.wq_b.weight", qk, c_.q_rank, dense(), attention);
    add(b + "attn.wkv.weight", c_.head_dim, C, dense(), attention);
    norm(b + "attn.kv_norm.weight", c_.head_dim, attention);
    add(b + "attn.wo_a.weight", int64_t{c_.o_groups} * c_.o_rank, qk / c_.o_groups, dense(), attention);
    add(b + "attn.wo_b.weight", C, int64_t{c_.o_groups} * c_.o_rank, dense(), attention);
    moe(b, n_experts, is_draft);
  }

  void moe(const std::string& b, int32_t n_experts, bool is_draft) {
    const int64_t C = c_.hidden, F = c_.ffn;
    const Part router = part(Part::router, is_draft), shared = part(Part::shared_experts, is_draft),
               routed = part(Part::routed_experts, is_draft);
    add(b + "ffn.gate.weight", n_experts, C, Stored::bf16, router);
    vector(b + "ffn.gate.bias", n_experts, Stored::f32, router, Fill::offset);
    vector(b + "ffn.gate.bias_vl", n_experts, Stored::f32, router, Fill::offset).optional = !c_.vision;
    add(b + "ffn.shared_experts.w1.weight", F, C, dense(), shared);
    add(b + "ffn.shared_experts.w2.weight", C, F, dense(), shared);
    add(b + "ffn.shared_experts.w3.weight", F, C, dense(), shared);
    const int32_t end = o_.n_experts < 0 ? n_experts : std::min(n_experts, o_.first_expert + o_.n_experts);
    for (int32_t e = o_.first_expert; e < end; ++e) {
      const std::string prefix = fmt::format("{}ffn.experts.{}.", b, e);
      add(prefix + "w1.weight", F, C, expert(), routed);
      add(prefix + "w2.weight", C, F, expert(), routed);
      add(prefix + "w3.weight", F, C, expert(), routed);
    }
  }

  void layer(int32_t l) {
    const std::string b = fmt::format("layers.{}.", l);
    const int64_t C = c_.hidden;
    block(b, c_.n_experts, false);
    const int32_t ratio = c_.ratios[static_cast<size_t>(l)];
    if (c_.is_kv_source(l)) {
      add(b + "attn.compressor.wkv.weight", c_.head_dim, C, Stored::bf16, Part::compressors_indexers);
      if (ratio > 1)
        add(b + "attn.compressor.wgate.weight", c_.head_dim, C, Stored::bf16, Part::compressors_indexers);
      norm(b + "attn.compressor.norm.weight", c_.head_dim, Part::compressors_indexers);
      add(b + "attn.indexer.wk.weight", c_.index_head_dim, c_.head_dim, Stored::bf16, Part::compressors_indexers);
      norm(b + "attn.indexer.k_norm.weight", c_.index_head_dim, Part::compressors_indexers);
    }
    if (c_.is_index_source(l)) {
      add(b + "attn.indexer.wq_b.weight", int64_t{c_.index_heads} * c_.index_head_dim, c_.q_rank, dense(),
          Part::compressors_indexers);
      add(b + "attn.indexer.weights_proj.weight", c_.index_heads, C, Stored::bf16, Part::compressors_indexers);
    }
    const int32_t slot = c_.engram_slot(l);
    if (slot < 0) return;
    if (o_.engram_tables)
      add(b + "engram.embed.weight", c_.engram.table_rows[static_cast<size_t>(slot)], c_.engram.head_dim,
          c_.quant.fp8 ? Stored::fp8_1x32 : Stored::bf16, Part::engram_tables)
          .fill = Fill::embedding;
    add(b + "engram.wkv.weight", (c_.n_streams + 1) * C, c_.engram.input_dim(), dense(), Part::engram_projections);
    add(b + "engram.q_weight", c_.n_streams, C, Stored::bf16, Part::engram_projections).fill = Fill::norm;
    add(b + "engram.k_weight", c_.n_streams, C, Stored::bf16, Part::engram_projections).fill = Fill::norm;
  }

  void draft() {
    const DsparkConfig& d = c_.dspark;
    const int64_t C = c_.hidden;
    for (int32_t m = 0; m < d.n_stages; ++m) block(fmt::format("mtp.{}.", m), d.n_experts, true);
    add("mtp.0.main_proj.weight", C, static_cast<int64_t>(d.target_layers.size()) * C, dense(), Part::draft);
    norm("mtp.0.main_norm.weight", C, Part::draft);
    const std::string last = fmt::format("mtp.{}.", d.n_stages - 1);
    norm(last + "norm.weight", C, Part::draft);
    add(last + "markov_head.embed.weight", c_.vocab, d.markov_rank, Stored::bf16, Part::draft);
    add(last + "markov_head.head.weight", c_.vocab, d.markov_rank, Stored::bf16, Part::draft);
    add(last + "confidence_head.proj.weight", 1, C + d.markov_rank, Stored::bf16, Part::draft);
  }

  void vision(const VisionConfig& v) {
    const int64_t C = c_.hidden, D = v.hidden, patch = int64_t{3} * v.patch * v.patch,
                  window = int64_t{v.merge} * v.merge * D;
    const auto matrix = [&](std::string name, int64_t out, int64_t in) {
      add(std::move(name), out, in, Stored::bf16, Part::vision);
    };
    const auto bias = [&](std::string name, int64_t n) {
      vector(std::move(name), n, Stored::bf16, Part::vision, Fill::offset);
    };
    for (const std::string_view name : {"image_start", "image_end", "image_newline"}) bias(std::string(name), C);
    matrix("vision.patch_embed.proj.weight", D, patch);
    bias("vision.patch_embed.proj.bias", D);
    for (int32_t l = 0; l < v.n_layers; ++l) {
      const std::string b = fmt::format("vision.blocks.{}.", l);
      norm(b + "norm1.weight", D, Part::vision);
      norm(b + "norm2.weight", D, Part::vision);
      matrix(b + "attn.wqkv.weight", 3 * D, D);
      bias(b + "attn.wqkv.bias", 3 * D);
      matrix(b + "attn.wo.weight", D, D);
      bias(b + "attn.wo.bias", D);
      matrix(b + "mlp.w1.weight", 2 * int64_t{v.ffn}, D);
      matrix(b + "mlp.w2.weight", D, v.ffn);
    }
    norm("vision.norm.weight", D, Part::vision);
    matrix("aligner.w1.weight", C, window);
    bias("aligner.w1.bias", C);
    matrix("aligner.w2.weight", C, C);
    bias("aligner.w2.bias", C);
  }

  const Config& c_;
  const InventoryOptions& o_;
  std::vector<WeightSpec> specs_;
};

}  // namespace

std::vector<WeightSpec> inventory(const Config& config, const InventoryOptions& options) {
  return Builder(config, options).run();
}

}  // namespace gannet::deepseek_v41
