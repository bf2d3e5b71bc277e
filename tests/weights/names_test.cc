#include "weights/names.h"

#include <gtest/gtest.h>

namespace gannet::weights {
namespace {

std::string v41(std::string_view name) { return canonical_v41(name).name; }
std::string hf(std::string_view name) { return canonical_llama(name).name; }
std::string gguf(std::string_view name, bool post_norms = false) { return canonical_gguf(name, post_norms).name; }

TEST(Names, ReleasedV41StaysAsItIs) {
  for (const std::string_view name : {"embed.weight",
                                      "norm.weight",
                                      "head.weight",
                                      "layers.3.attn_norm.weight",
                                      "layers.3.hc_attn_fn",
                                      "layers.3.attn.attn_sink",
                                      "layers.3.attn.wq_a.scale",
                                      "layers.2.attn.compressor.wgate.weight",
                                      "layers.2.attn.compressor.norm.weight",
                                      "layers.2.attn.indexer.wk.weight",
                                      "layers.2.attn.indexer.weights_proj.weight",
                                      "layers.3.ffn.gate.bias_vl",
                                      "layers.3.ffn.experts.383.w2.scale",
                                      "layers.1.engram.embed.weight",
                                      "layers.1.engram.embed.scale",
                                      "layers.1.engram.q_weight",
                                      "mtp.0.main_proj.weight",
                                      "mtp.2.markov_head.embed.weight",
                                      "image_newline",
                                      "vision.blocks.3.mlp.w1.weight",
                                      "vision.blocks.3.attn.wqkv.bias",
                                      "vision.norm.weight",
                                      "aligner.w1.bias"})
    EXPECT_EQ(v41(name), name);
}

TEST(Names, TransformersV41) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"model.embed_tokens.weight", "embed.weight"},
      {"lm_head.weight", "head.weight"},
      {"model.norm.weight", "norm.weight"},
      {"model.language_model.layers.1.input_layernorm.weight", "layers.1.attn_norm.weight"},
      {"model.layers.1.post_attention_layernorm.weight", "layers.1.ffn_norm.weight"},
      {"model.layers.1.attn_hc.fn", "layers.1.hc_attn_fn"},
      {"model.layers.1.ffn_hc.scale", "layers.1.hc_ffn_scale"},
      {"model.layers.1.self_attn.sinks", "layers.1.attn.attn_sink"},
      {"model.layers.1.self_attn.q_a_proj.weight", "layers.1.attn.wq_a.weight"},
      {"model.layers.1.self_attn.q_a_norm.weight", "layers.1.attn.q_norm.weight"},
      {"model.layers.1.self_attn.q_b_proj.weight_scale_inv", "layers.1.attn.wq_b.scale"},
      {"model.layers.1.self_attn.kv_proj.weight", "layers.1.attn.wkv.weight"},
      {"model.layers.1.self_attn.kv_norm.weight", "layers.1.attn.kv_norm.weight"},
      {"model.layers.1.self_attn.o_a_proj.weight", "layers.1.attn.wo_a.weight"},
      {"model.layers.1.self_attn.o_b_proj.weight", "layers.1.attn.wo_b.weight"},
      {"model.layers.1.self_attn.compressor.kv_proj.weight", "layers.1.attn.compressor.wkv.weight"},
      {"model.layers.1.self_attn.compressor.gate_proj.weight", "layers.1.attn.compressor.wgate.weight"},
      {"model.layers.1.self_attn.compressor.kv_norm.weight", "layers.1.attn.compressor.norm.weight"},
      {"model.layers.1.self_attn.indexer.k_proj.weight", "layers.1.attn.indexer.wk.weight"},
      {"model.layers.1.self_attn.indexer.q_b_proj.weight", "layers.1.attn.indexer.wq_b.weight"},
      {"model.layers.1.self_attn.indexer.weights_proj.weight", "layers.1.attn.indexer.weights_proj.weight"},
      {"model.layers.1.mlp.gate.weight", "layers.1.ffn.gate.weight"},
      {"model.layers.1.mlp.gate.e_score_correction_bias", "layers.1.ffn.gate.bias"},
      {"model.layers.1.mlp.gate.e_score_correction_bias_vl", "layers.1.ffn.gate.bias_vl"},
      {"model.layers.1.mlp.shared_experts.gate_proj.weight", "layers.1.ffn.shared_experts.w1.weight"},
      {"model.layers.1.mlp.shared_experts.down_proj.weight_scale_inv", "layers.1.ffn.shared_experts.w2.scale"},
      {"model.layers.1.mlp.experts.7.up_proj.weight", "layers.1.ffn.experts.7.w3.weight"},
      {"model.layers.1.engram.wkv.weight", "layers.1.engram.wkv.weight"},
      {"model.layers.1.engram.embed.weight", "layers.1.engram.embed.weight"},
      // An earlier form, with the released names inside.
      {"model.layers.1.attn.wq_a.weight", "layers.1.attn.wq_a.weight"},
      {"model.layers.1.ffn.experts.3.w1.weight", "layers.1.ffn.experts.3.w1.weight"}};
  for (const auto& [from, to] : cases) EXPECT_EQ(v41(from), to) << from;
}

TEST(Names, StacksOfExperts) {
  const CanonicalName gate_up = canonical_v41("model.layers.4.mlp.experts.gate_up_proj");
  EXPECT_EQ(gate_up.name, "layers.4.ffn.experts.");
  EXPECT_EQ(gate_up.first, ".w1.weight");
  EXPECT_EQ(gate_up.second, ".w3.weight");
  EXPECT_EQ(canonical_v41("model.layers.4.mlp.experts.down_proj_scale_inv").first, ".w2.scale");
  EXPECT_EQ(canonical_v41("model.layers.4.mlp.experts.gate_up_proj.weight_scale_inv").second, ".w3.scale");
  const CanonicalName qwen = canonical_llama("model.layers.4.mlp.experts.gate_up_proj");
  EXPECT_EQ(qwen.name, "model.layers.4.mlp.experts.");
  EXPECT_EQ(qwen.second, ".up_proj.weight");
  EXPECT_EQ(canonical_gguf("blk.4.ffn_down_exps.weight", false).first, ".down_proj.weight");
  EXPECT_FALSE(canonical_llama("model.layers.4.mlp.experts.3.up_proj.weight").stacked());
}

TEST(Names, LlamaPrefixes) {
  EXPECT_EQ(hf("model.layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(hf("layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(hf("language_model.model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(hf("model.language_model.embed_tokens.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(hf("language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(hf("vision_tower.x"), "vision_tower.x");
  EXPECT_EQ(hf(""), "");
  EXPECT_EQ(v41(""), "");
}

TEST(Names, Gguf) {
  EXPECT_EQ(gguf("token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(gguf("output.weight"), "lm_head.weight");
  EXPECT_EQ(gguf("output_norm.weight"), "model.norm.weight");
  EXPECT_EQ(gguf("blk.12.attn_q.bias"), "model.layers.12.self_attn.q_proj.bias");
  EXPECT_EQ(gguf("blk.12.attn_k_norm.weight"), "model.layers.12.self_attn.k_norm.weight");
  EXPECT_EQ(gguf("blk.12.ffn_norm.weight"), "model.layers.12.post_attention_layernorm.weight");
  EXPECT_EQ(gguf("blk.12.ffn_norm.weight", true), "model.layers.12.pre_feedforward_layernorm.weight");
  EXPECT_EQ(gguf("blk.12.post_attention_norm.weight", true), "model.layers.12.post_attention_layernorm.weight");
  EXPECT_EQ(gguf("blk.12.post_ffw_norm.weight", true), "model.layers.12.post_feedforward_layernorm.weight");
  EXPECT_EQ(gguf("blk.12.ffn_gate_inp.weight"), "model.layers.12.mlp.gate.weight");
  EXPECT_EQ(gguf("rope_freqs.weight"), "rope_freqs.weight");
  EXPECT_EQ(gguf("blk.1.unknown.weight"), "blk.1.unknown.weight");
}

}  // namespace
}  // namespace gannet::weights
