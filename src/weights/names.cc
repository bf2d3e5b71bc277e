#include "weights/names.h"

#include <array>
#include <utility>
#include <vector>

namespace gannet::weights {
namespace {

using Rename = std::pair<std::string_view, std::string_view>;

template <size_t N>
std::string_view renamed(const std::array<Rename, N>& table, std::string_view part) {
  for (const auto& [from, to] : table)
    if (part == from) return to;
  return part;
}

std::vector<std::string_view> split(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

std::string join(const std::vector<std::string_view>& parts, size_t begin, size_t end) {
  std::string out;
  for (size_t i = begin; i < end; ++i) {
    if (i > begin) out += '.';
    out += parts[i];
  }
  return out;
}

// ---- DeepSeek-V4.1
// -----------------------------------------------------------------------------------------------
constexpr std::array<Rename, 2> kV41Top = {{{"embed_tokens", "embed"}, {"lm_head", "head"}}};
// Third component of layers.N.* and mtp.N.*.
constexpr std::array<Rename, 4> kV41Block = {{{"self_attn", "attn"},
                                              {"mlp", "ffn"},
                                              {"input_layernorm", "attn_norm"},
                                              {"post_attention_layernorm", "ffn_norm"}}};
constexpr std::array<Rename, 7> kV41Attention = {{{"q_a_proj", "wq_a"},
                                                  {"q_a_norm", "q_norm"},
                                                  {"q_b_proj", "wq_b"},
                                                  {"kv_proj", "wkv"},
                                                  {"o_a_proj", "wo_a"},
                                                  {"o_b_proj", "wo_b"},
                                                  {"sinks", "attn_sink"}}};
constexpr std::array<Rename, 3> kV41Compressor = {
    {{"kv_proj", "wkv"}, {"gate_proj", "wgate"}, {"kv_norm", "norm"}}};
constexpr std::array<Rename, 2> kV41Indexer = {{{"k_proj", "wk"}, {"q_b_proj", "wq_b"}}};
constexpr std::array<Rename, 1> kV41Engram = {{{"kv_proj", "wkv"}}};
constexpr std::array<Rename, 3> kV41Expert = {{{"gate_proj", "w1"}, {"up_proj", "w3"}, {"down_proj", "w2"}}};
constexpr std::array<Rename, 2> kV41Gate = {
    {{"e_score_correction_bias", "bias"}, {"e_score_correction_bias_vl", "bias_vl"}}};

// Parts of a block from its third component on, renamed in place.
void rename_v41_block(std::vector<std::string_view>& p) {
  p[2] = renamed(kV41Block, p[2]);
  if (p.size() < 4) return;
  if (p[2] == "engram") p[3] = renamed(kV41Engram, p[3]);
  if (p[2] == "attn") {
    if (p[3] == "compressor" && p.size() > 4)
      p[4] = renamed(kV41Compressor, p[4]);
    else if (p[3] == "indexer" && p.size() > 4)
      p[4] = renamed(kV41Indexer, p[4]);
    else
      p[3] = renamed(kV41Attention, p[3]);
  }
  if (p[2] == "ffn" && p.size() > 4) {
    if (p[3] == "gate") p[4] = renamed(kV41Gate, p[4]);
    if (p[3] == "shared_experts") p[4] = renamed(kV41Expert, p[4]);
    if (p[3] == "experts" && p.size() > 5) p[5] = renamed(kV41Expert, p[5]);
  }
}

// "<block>.ffn.experts.gate_up_proj" and "down_proj", and their scales.
CanonicalName v41_stack(const std::vector<std::string_view>& p) {
  CanonicalName out;
  out.name = join(p, 0, 4) + ".";
  std::string_view leaf = p[4];
  const bool scale =
      leaf.ends_with("_scale_inv") || (p.size() > 5 && (p[5] == "weight_scale_inv" || p[5] == "scale"));
  if (leaf.ends_with("_scale_inv")) leaf.remove_suffix(10);
  const std::string kind = scale ? ".scale" : ".weight";
  if (leaf == "gate_up_proj") {
    out.first = ".w1" + kind;
    out.second = ".w3" + kind;
  } else {
    out.first = ".w2" + kind;
  }
  return out;
}

// ---- Llama class: GGUF
// -----------------------------------------------------------------------------------------------
constexpr std::array<Rename, 3> kGgufTop = {
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}}};
constexpr std::array<Rename, 13> kGgufBlock = {{{"attn_norm", "input_layernorm"},
                                                {"attn_q", "self_attn.q_proj"},
                                                {"attn_k", "self_attn.k_proj"},
                                                {"attn_v", "self_attn.v_proj"},
                                                {"attn_output", "self_attn.o_proj"},
                                                {"attn_q_norm", "self_attn.q_norm"},
                                                {"attn_k_norm", "self_attn.k_norm"},
                                                {"post_attention_norm", "post_attention_layernorm"},
                                                {"post_ffw_norm", "post_feedforward_layernorm"},
                                                {"ffn_gate", "mlp.gate_proj"},
                                                {"ffn_up", "mlp.up_proj"},
                                                {"ffn_down", "mlp.down_proj"},
                                                {"ffn_gate_inp", "mlp.gate"}}};
constexpr std::array<Rename, 3> kGgufExperts = {{{"ffn_gate_exps", ".gate_proj.weight"},
                                                 {"ffn_up_exps", ".up_proj.weight"},
                                                 {"ffn_down_exps", ".down_proj.weight"}}};

bool strip(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

}  // namespace

CanonicalName canonical_v41(std::string_view file_name) {
  std::string_view name = file_name;
  strip(name, "model.");
  strip(name, "language_model.");
  strip(name, "model.");
  std::vector<std::string_view> p = split(name);
  if ((p[0] == "layers" || p[0] == "mtp") && p.size() >= 3) {
    rename_v41_block(p);
    if (p.size() == 4 && (p[2] == "attn_hc" || p[2] == "ffn_hc"))  // attn_hc.fn: hc_attn_fn
      return {std::string(p[0]) + "." + std::string(p[1]) + ".hc_" + std::string(p[2].substr(0, p[2].size() - 3)) +
                  "_" + std::string(p[3]),
              "", ""};
    const bool stack = p.size() >= 5 && p[2] == "ffn" && p[3] == "experts" &&
                       (p[4].starts_with("gate_up_proj") || p[4].starts_with("down_proj"));
    if (stack) return v41_stack(p);
  } else {
    p[0] = renamed(kV41Top, p[0]);
  }
  if (p.back() == "weight_scale_inv") p.back() = "scale";
  return {join(p, 0, p.size()), "", ""};
}

CanonicalName canonical_llama(std::string_view file_name) {
  std::string_view name = file_name;
  while (strip(name, "model.") || strip(name, "language_model.")) {
  }
  if (name.starts_with("lm_head.")) return {std::string(name), "", ""};
  const bool text = name.starts_with("layers.") || name.starts_with("embed_tokens.") || name.starts_with("norm.");
  if (!text) return {std::string(file_name), "", ""};
  const size_t experts = name.find(".mlp.experts.");
  if (experts != std::string_view::npos) {
    const std::string_view leaf = name.substr(experts + 13);
    const std::string prefix = "model." + std::string(name.substr(0, experts + 13));
    if (leaf == "gate_up_proj") return {prefix, ".gate_proj.weight", ".up_proj.weight"};
    if (leaf == "down_proj") return {prefix, ".down_proj.weight", ""};
  }
  return {"model." + std::string(name), "", ""};
}

CanonicalName canonical_gguf(std::string_view file_name, bool post_norms) {
  const std::vector<std::string_view> p = split(file_name);
  if (p.size() == 2) {
    const std::string_view top = renamed(kGgufTop, p[0]);
    return {std::string(top) + "." + std::string(p[1]), "", ""};
  }
  if (p.size() != 4 || p[0] != "blk") return {std::string(file_name), "", ""};
  const std::string layer = "model.layers." + std::string(p[1]) + ".";
  if (const std::string_view experts = renamed(kGgufExperts, p[2]); experts != p[2] && p[3] == "weight")
    return {layer + "mlp.experts.", std::string(experts), ""};
  std::string_view part = renamed(kGgufBlock, p[2]);
  if (p[2] == "ffn_norm") part = post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm";
  if (part == p[2]) return {std::string(file_name), "", ""};
  return {layer + std::string(part) + "." + std::string(p[3]), "", ""};
}

}  // namespace gannet::weights
