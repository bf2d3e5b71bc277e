#include "model/llama/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/llama/inventory.h"
#include "support/model_files.h"

namespace gannet::llama {
namespace {

using test::fails_with;
using test::GgufWriter;

Result<Config> parse(std::string_view text) {
  auto json = Json::parse(text);
  EXPECT_TRUE(json) << text;
  return config_from_json(*json, "config.json");
}

// A base that every family accepts, with more fields in front (the first mention wins nowhere: keys must differ).
std::string with(std::string_view more) {
  return R"({"vocab_size":320,"hidden_size":64,"num_hidden_layers":6,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,)" +
         std::string(more) + "}";
}

int64_t inventory_parameters(const Config& c) {
  int64_t n = 0;
  for (const auto& spec : inventory(c)) n += spec.elements();
  return n;
}

TEST(LlamaConfig, SmolLm2) {
  const auto c = parse(
      R"({"architectures":["LlamaForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":1,"eos_token_id":2,
    "hidden_act":"silu","hidden_size":576,"initializer_range":0.041,"intermediate_size":1536,"is_llama_config":true,"max_position_embeddings":8192,
    "mlp_bias":false,"model_type":"llama","num_attention_heads":9,"num_hidden_layers":30,"num_key_value_heads":3,"pad_token_id":2,"pretraining_tp":1,
    "rms_norm_eps":1e-05,"rope_interleaved":false,"rope_scaling":null,"rope_theta":100000,"tie_word_embeddings":true,"torch_dtype":"bfloat16",
    "use_cache":true,"vocab_size":49152})");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->head_dim, 64);
  EXPECT_EQ(c->rope.theta, 100000);
  EXPECT_EQ(c->rope_pairs, RopePairs::half_split);
  EXPECT_TRUE(c->tied_embeddings && !c->qkv_bias && !c->qk_norm);
  EXPECT_EQ(c->query_scale, 0.125);
  EXPECT_EQ(c->parameters(), 134515008);
  EXPECT_EQ(inventory_parameters(*c), 134515008);
}

TEST(LlamaConfig, Llama31) {
  const auto c = parse(with(
      R"("model_type":"llama","rope_theta":500000.0,"max_position_embeddings":131072,"bos_token_id":128,"eos_token_id":[129,131,132],
    "rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"})"));
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->rope.scaling, RopeScaling::llama3);
  EXPECT_EQ(c->rope.factor, 8);
  EXPECT_EQ(c->rope.original_context, 8192);
  EXPECT_EQ(c->eos_ids, (std::vector<int32_t>{129, 131, 132}));
  EXPECT_FALSE(c->tied_embeddings);
  EXPECT_EQ(c->parameters(), inventory_parameters(*c));
  // transformers 5 puts everything into rope_parameters.
  const auto v5 = parse(
      with(R"("model_type":"llama","rope_parameters":{"rope_theta":7000.0,"rope_type":"linear","factor":2.0})"));
  ASSERT_TRUE(v5) << v5.error().message;
  EXPECT_EQ(v5->rope.theta, 7000);
  EXPECT_EQ(v5->rope.scaling, RopeScaling::linear);
  EXPECT_EQ(v5->rope_local.theta, 7000);
}

TEST(LlamaConfig, Qwen2AndQwen3) {
  const auto q2 = parse(with(
      R"("model_type":"qwen2","use_sliding_window":false,"sliding_window":32768,"max_window_layers":3,"rope_theta":1000000.0,
    "rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":32768})"));
  ASSERT_TRUE(q2) << q2.error().message;
  EXPECT_TRUE(q2->qkv_bias && !q2->o_bias && !q2->qk_norm);
  EXPECT_EQ(q2->sliding_window, 0);
  EXPECT_EQ(q2->rope.scaling, RopeScaling::yarn);
  EXPECT_DOUBLE_EQ(q2->rope.attention_factor, 0.1 * std::log(4.0) + 1);
  EXPECT_EQ(q2->parameters(), inventory_parameters(*q2));
  const auto window =
      parse(with(R"("model_type":"qwen2","use_sliding_window":true,"sliding_window":128,"max_window_layers":4)"));
  ASSERT_TRUE(window);
  EXPECT_EQ(window->is_local, (std::vector<bool>{false, false, false, false, true, true}));
  EXPECT_EQ(window->sliding_window, 128);
  const auto q3 = parse(with(R"("model_type":"qwen3")"));
  ASSERT_TRUE(q3);
  EXPECT_TRUE(q3->qk_norm && !q3->qkv_bias);
  EXPECT_EQ(q3->head_dim, 128);
  EXPECT_EQ(q3->parameters(), inventory_parameters(*q3));
}

TEST(LlamaConfig, Qwen3Moe) {
  const auto c = parse(with(
      R"("model_type":"qwen3_moe","head_dim":32,"num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":48,"norm_topk_prob":true,
    "decoder_sparse_step":2,"mlp_only_layers":[3],"attention_bias":true)"));
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->is_moe, (std::vector<bool>{false, true, false, false, false, true}));
  EXPECT_TRUE(c->norm_topk_prob && c->qkv_bias && c->o_bias);
  EXPECT_EQ(c->expert_ffn, 48);
  EXPECT_EQ(c->parameters(), inventory_parameters(*c));
}

TEST(LlamaConfig, Gemma3) {
  const auto c = parse(
      R"({"model_type":"gemma3","eos_token_id":[1,106],"text_config":)" +
      with(
          R"("model_type":"gemma3_text","head_dim":32,"sliding_window":512,"query_pre_attn_scalar":64,"rope_theta":1000000,
    "rope_local_base_freq":10000,"rope_scaling":{"factor":8.0,"rope_type":"linear"},"hidden_activation":"gelu_pytorch_tanh")") +
      "}");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->family, Family::gemma3);
  EXPECT_EQ(c->is_local, (std::vector<bool>{true, true, true, true, true, false}));
  EXPECT_EQ(c->query_scale, 0.125);
  EXPECT_EQ(c->embedding_scale, 8.0f);
  EXPECT_TRUE(c->norm_plus_one && c->post_norms && c->tied_embeddings && c->qk_norm);
  EXPECT_EQ(c->activation, Activation::gelu_tanh);
  EXPECT_EQ(c->rope.scaling, RopeScaling::linear);
  EXPECT_EQ(c->rope_local.scaling, RopeScaling::none);
  EXPECT_EQ(c->rope_local.theta, 10000);
  EXPECT_EQ(c->eos_ids, (std::vector<int32_t>{1, 106}));
  EXPECT_EQ(c->parameters(), inventory_parameters(*c));
  const auto v5 = parse(with(
      R"("model_type":"gemma3_text","layer_types":["full_attention","sliding_attention","sliding_attention","full_attention",
    "sliding_attention","sliding_attention"],"sliding_window":16,"rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":500000.0},
    "sliding_attention":{"rope_type":"default","rope_theta":20000.0}})"));
  ASSERT_TRUE(v5) << v5.error().message;
  EXPECT_EQ(v5->rope.theta, 500000);
  EXPECT_EQ(v5->rope_local.theta, 20000);
  EXPECT_EQ(v5->is_local, (std::vector<bool>{false, true, true, false, true, true}));
}

TEST(LlamaConfig, RefusesByField) {
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {R"("model_type":"mamba")", {"model_type", "mamba"}},
      {R"("model_type":"llama","hidden_act":"relu")", {"hidden_act", "relu"}},
      {R"("model_type":"gemma3_text","attn_logit_softcapping":50.0)", {"attn_logit_softcapping = 50.0"}},
      {R"("model_type":"gemma3_text","final_logit_softcapping":30.0)", {"final_logit_softcapping = 30.0"}},
      {R"("model_type":"gemma3_text","use_bidirectional_attention":true)", {"use_bidirectional_attention"}},
      {R"("model_type":"llama","rope_scaling":{"type":"dynamic","factor":2})", {"rope_scaling", "type", "dynamic"}},
      {R"("model_type":"llama","rope_scaling":{"rope_type":"llama3","factor":8})", {"low_freq_factor"}},
      {R"("model_type":"llama","rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4})",
       {"high_freq_factor = 4"}},
      {R"("model_type":"llama","rope_parameters":{"partial_rotary_factor":0.5})", {"partial_rotary_factor = 0.5"}},
      {R"("model_type":"llama","head_dim":15)", {"head_dim = 15", "odd"}},
      {R"("model_type":"llama","rms_norm_eps":"x")", {"rms_norm_eps"}},
      {R"("model_type":"llama","quantization_config":{})", {"quantization_config"}},
      {R"("model_type":"llama","eos_token_id":320)", {"eos_token_id = 320"}},
      {R"("model_type":"llama","layer_types":["full_attention"])", {"layer_types", "6"}},
      {R"("model_type":"llama","layer_types":["a","a","a","a","a","a"])", {"layer_types"}},
      {R"("model_type":"qwen3_moe")", {"num_experts"}},
      {R"("model_type":"qwen3_moe","num_experts":2,"num_experts_per_tok":3,"moe_intermediate_size":8,"head_dim":16)",
       {"num_experts_per_tok = 3", "2"}},
  };
  for (const auto& [more, words] : cases) EXPECT_TRUE(fails_with(parse(with(more)), words)) << more;
  EXPECT_TRUE(fails_with(parse(R"({"model_type":"llama"})"), {"vocab_size", "missing"}));
  EXPECT_TRUE(fails_with(parse("[]"), {"config.json"}));
  EXPECT_TRUE(fails_with(
      parse(
          R"({"vocab_size":320,"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":3,
    "intermediate_size":96,"model_type":"llama"})"),
      {"num_attention_heads = 4", "num_key_value_heads = 3"}));
}

GgufWriter gguf(std::string arch) {
  GgufWriter w;
  w.string("general.architecture", arch);
  w.u32(arch + ".block_count", 12);
  w.u32(arch + ".embedding_length", 64);
  w.u32(arch + ".attention.head_count", 4);
  w.u32(arch + ".attention.head_count_kv", 2);
  w.u32(arch + ".feed_forward_length", 96);
  w.u32(arch + ".context_length", 512);
  w.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  w.strings("tokenizer.ggml.tokens", std::vector<std::string>(320, "t"));
  w.u32("tokenizer.ggml.eos_token_id", 3);
  w.u32("tokenizer.ggml.eot_token_id", 4);
  return w;
}

Result<Config> read(const GgufWriter& w) {
  const std::string bytes = w.bytes();
  const auto file = files::Gguf::parse(std::as_bytes(std::span(bytes)), "m.gguf");
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  return config_from_gguf(*file);
}

TEST(LlamaConfigGguf, Llama) {
  GgufWriter w = gguf("llama");
  w.f32("llama.rope.freq_base", 500000);
  std::string freqs;
  for (int i = 0; i < 8; ++i) freqs += test::raw(1.0f + static_cast<float>(i));
  w.tensor("rope_freqs.weight", {8}, 0, freqs);
  const auto c = read(w);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->rope_pairs, RopePairs::interleaved);
  EXPECT_EQ(c->vocab, 320);
  EXPECT_EQ(c->head_dim, 16);
  EXPECT_EQ(c->rope.theta, 500000);
  EXPECT_EQ(c->rope_divisors.size(), 8u);
  EXPECT_EQ(c->rope_divisors[7], 8);
  EXPECT_TRUE(c->tied_embeddings);
  EXPECT_EQ(c->eos_ids, (std::vector<int32_t>{3, 4}));
}

TEST(LlamaConfigGguf, QwenAndGemma) {
  GgufWriter w = gguf("qwen2");
  w.tensor("output.weight", {1}, 0, "1234");
  w.tensor("blk.0.attn_q.bias", {1}, 0, "1234");
  w.string("qwen2.rope.scaling.type", "yarn");
  w.f32("qwen2.rope.scaling.factor", 4);
  w.u32("qwen2.rope.scaling.original_context_length", 128);
  const auto q2 = read(w);
  ASSERT_TRUE(q2) << q2.error().message;
  EXPECT_EQ(q2->rope_pairs, RopePairs::half_split);
  EXPECT_TRUE(q2->qkv_bias && !q2->tied_embeddings && !q2->qk_norm);
  EXPECT_EQ(q2->rope.scaling, RopeScaling::yarn);
  EXPECT_EQ(q2->rope.original_context, 128);
  GgufWriter moe = gguf("qwen3moe");
  moe.u32("qwen3moe.expert_count", 8);
  moe.u32("qwen3moe.expert_used_count", 2);
  moe.u32("qwen3moe.expert_feed_forward_length", 48);
  const auto q3 = read(moe);
  ASSERT_TRUE(q3) << q3.error().message;
  EXPECT_TRUE(q3->qk_norm && q3->norm_topk_prob);
  EXPECT_EQ(q3->is_moe.size(), 12u);
  GgufWriter g = gguf("gemma3");
  g.u32("gemma3.attention.sliding_window", 32);
  g.u32("gemma3.attention.key_length", 32);
  g.u32("gemma3.attention.value_length", 32);
  const auto gemma = read(g);
  ASSERT_TRUE(gemma) << gemma.error().message;
  EXPECT_FALSE(gemma->norm_plus_one);  // the format stores 1 + weight
  EXPECT_TRUE(gemma->post_norms);
  EXPECT_EQ(gemma->is_local[4], true);
  EXPECT_EQ(gemma->is_local[5], false);
  EXPECT_EQ(gemma->rope.theta, 1e6);
  EXPECT_EQ(gemma->rope_local.theta, 1e4);
}

TEST(LlamaConfigGguf, Refuses) {
  const auto with_u32 = [](std::string arch, std::string key, uint32_t value) {
    GgufWriter w = gguf(arch);
    w.u32(key, value);
    return read(w);
  };
  EXPECT_TRUE(fails_with(read(gguf("mamba")), {"general.architecture", "mamba"}));
  EXPECT_TRUE(fails_with(with_u32("llama", "llama.rope.dimension_count", 8), {"llama.rope.dimension_count = 8"}));
  EXPECT_TRUE(fails_with(with_u32("llama", "llama.expert_count", 8), {"llama.expert_count"}));
  EXPECT_TRUE(fails_with(with_u32("llama", "llama.vocab_size", 0), {"llama.vocab_size = 0"}));
  GgufWriter cap = gguf("gemma3");
  cap.f32("gemma3.final_logit_softcapping", 30);
  EXPECT_TRUE(fails_with(read(cap), {"gemma3.final_logit_softcapping"}));
  GgufWriter scaling = gguf("llama");
  scaling.string("llama.rope.scaling.type", "longrope");
  EXPECT_TRUE(fails_with(read(scaling), {"longrope"}));
  GgufWriter freqs = gguf("llama");
  freqs.tensor("rope_freqs.weight", {8}, 0, test::raw(NAN) + std::string(28, 'x'));
  EXPECT_TRUE(fails_with(read(freqs), {"rope_freqs.weight[0]"}));
  GgufWriter short_freqs = gguf("llama");
  short_freqs.tensor("rope_freqs.weight", {4}, 0, std::string(16, 'x'));
  EXPECT_TRUE(fails_with(read(short_freqs), {"rope_freqs.weight", "[4]"}));
  GgufWriter w;
  w.string("general.architecture", "llama");
  EXPECT_TRUE(fails_with(read(w), {"llama.block_count"}));
}

}  // namespace
}  // namespace gannet::llama
