#include "model/deepseek_v41/config.h"

#include <gtest/gtest.h>

#include "model/deepseek_v41/inventory.h"
#include "support/model_files.h"

namespace gannet::deepseek_v41 {
namespace {

using test::fails_with;
using weights::Part;

// The released config.json.
constexpr std::string_view kReleased = R"({
  "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "dtype": "bfloat16", "transformers_version": "5.6.0",
  "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "image_token_id": 129264,
  "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32], "scale_fmt": "ue8m0",
                          "expert_dtype": "fp4"},
  "text_config": {
    "model_type": "deepseek_v41_text", "vocab_size": 129280, "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 64,
    "num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64, "q_lora_rank": 1280, "o_groups": 8, "o_lora_rank": 1024,
    "moe_intermediate_size": 2304, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 6, "scoring_func": "sqrtsoftplus",
    "topk_method": "noaux_tc", "norm_topk_prob": true, "routed_scaling_factor": 1.5, "swiglu_limit": 10.0, "hidden_act": "silu",
    "rms_norm_eps": 1e-20, "attention_bias": false, "attention_dropout": 0.0, "initializer_range": 0.02, "use_cache": true,
    "tie_word_embeddings": false, "max_position_embeddings": 1048576, "rope_theta": 10000, "compress_rope_theta": 160000,
    "rope_scaling": {"rope_type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 65536},
    "sliding_window": 128,
    "compress_ratios": [0,0,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,0,0,0],
    "kv_source_layer_ids": [2,8,14,20], "index_source_layer_ids": [2,8,14,20,24,28,32,36], "index_n_heads": 32, "index_head_dim": 128,
    "index_topk": 512, "candidate_source_layer_id": 20, "candidate_topk_blocks": 2048, "candidate_block_size": 8, "hc_mult": 4,
    "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "engram_layer_ids": [1,14], "engram_num_embeddings": [384006168, 384016682],
    "engram_vocab_size": 16000000, "engram_max_ngram_size": 4, "engram_n_heads": 8, "engram_head_dim": 256, "engram_pad_token_id": 2,
    "engram_compressed_vocab_size": 99092, "num_nextn_predict_layers": 3, "dspark_block_size": 5, "dspark_noise_token_id": 128799,
    "dspark_target_layer_ids": [37,38,39], "dspark_markov_rank": 256, "dspark_n_routed_experts": 128, "dspark_num_experts_per_tok": 3},
  "vision_config": {"model_type": "deepseek_v41_vision", "hidden_size": 1024, "num_hidden_layers": 32, "num_attention_heads": 16,
    "intermediate_size": 2816, "patch_size": 14, "downsample_ratio": 3, "rope_theta": 10000, "max_image_tokens": 1024, "min_pixels": 295936,
    "max_wh_ratio": null}})";

// A small valid text config, flat.
constexpr std::string_view kTiny =
    R"({"model_type": "deepseek_v41_text", "vocab_size": 320, "hidden_size": 128, "num_hidden_layers": 10,
  "num_attention_heads": 4, "head_dim": 64, "qk_rope_head_dim": 16, "q_lora_rank": 64, "o_groups": 2, "o_lora_rank": 32,
  "moe_intermediate_size": 64, "n_routed_experts": 8, "num_experts_per_tok": 2, "sliding_window": 16,
  "compress_ratios": [0,0,2,2,2,2,1,1,1,1], "kv_source_layer_ids": [2,4,6], "index_source_layer_ids": [2,4,6,8], "index_n_heads": 16,
  "index_head_dim": 32, "index_topk": 16, "candidate_source_layer_id": 6, "candidate_topk_blocks": 3, "engram_layer_ids": [1,4],
  "engram_vocab_size": 64, "engram_n_heads": 2, "engram_head_dim": 32, "engram_num_embeddings": [462,630], "engram_compressed_vocab_size": 300,
  "num_nextn_predict_layers": 2, "dspark_noise_token_id": 319, "dspark_n_routed_experts": 4, "dspark_num_experts_per_tok": 2})";

Result<Config> parse(std::string_view text) {
  auto json = Json::parse(text);
  EXPECT_TRUE(json) << (json ? "" : json.error().message);
  return config_from_json(*json, "config.json");
}

// The tiny config with one field replaced ("null" removes it).
Result<Config> tiny_with(std::string_view field, std::string_view value) {
  Json json = *Json::parse(kTiny);
  json.set(field, *Json::parse(value));
  return config_from_json(json, "config.json");
}

TEST(V41Config, Released) {
  const auto c = parse(kReleased);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->vocab, 129280);
  EXPECT_EQ(c->rms_eps, 1e-20);
  EXPECT_EQ(c->hc_eps, 1e-6);
  EXPECT_EQ(c->ratios.size(), 43u);
  EXPECT_EQ(c->ratios[19], 2);
  EXPECT_EQ(c->ratios[20], 1);
  EXPECT_TRUE(c->yarn.on);
  EXPECT_EQ(c->yarn.factor, 16);
  EXPECT_EQ(c->yarn.original_context, 65536);
  EXPECT_EQ(c->compress_rope_theta, 160000);
  EXPECT_TRUE(c->quant.fp8 && c->quant.fp4_experts);
  EXPECT_EQ(c->first_decoder_layer(), 20);
  EXPECT_EQ(c->kv_source(13), 8);
  EXPECT_EQ(c->kv_source(39), 20);
  EXPECT_EQ(c->index_source(27), 24);
  EXPECT_EQ(c->index_source(23), 20);
  EXPECT_TRUE(c->is_index_source(36) && !c->is_kv_source(36));
  EXPECT_EQ(c->engram_slot(14), 1);
  EXPECT_EQ(c->engram_slot(2), -1);
  EXPECT_EQ(c->engram.input_dim(), 6144);
  EXPECT_EQ(c->hc_mix(), 24);
  ASSERT_TRUE(c->vision.has_value());
  EXPECT_EQ(c->vision->ffn, 2816);
  EXPECT_FALSE(c->vision->max_wh_ratio.has_value());
  EXPECT_EQ(c->dspark.n_stages, 3);
}

// Published totals of the released checkpoint, part by part.
TEST(V41Config, InventoryAddsUpToTheReleasedCheckpoint) {
  const auto c = parse(kReleased);
  ASSERT_TRUE(c);
  struct Row {
    Part part;
    int64_t tensors, parameters, bytes;
  };
  const Row rows[] = {{Part::embedding, 1, 661913600, 1323827200},
                      {Part::head, 1, 661913600, 1323827200},
                      {Part::routed_experts, 92160, 543581798400, 288777830400},
                      {Part::shared_experts, 240, 1415577600, 1416960000},
                      {Part::router, 120, 78673920, 157409280},
                      {Part::attention, 520, 5064696320, 5069721600},
                      {Part::compressors_indexers, 43, 61868544, 81835008},
                      {Part::hyper_connections, 240, 39323760, 157295040},
                      {Part::norms, 81, 414720, 829440},
                      {Part::engram_tables, 4, 196613849600, 202758032400},
                      {Part::engram_projections, 8, 314654720, 315043840},
                      {Part::draft, 2401, 14225362530, 7932874632},
                      {Part::vision, 266, 485268480, 970536960}};
  int64_t tensors = 0, parameters = 0, bytes = 0;
  const auto specs = inventory(*c);
  for (const Row& row : rows) {
    Row sum{row.part, 0, 0, 0};
    for (const auto& spec : specs) {
      if (spec.part != row.part) continue;
      sum.tensors += spec.has_scale() ? 2 : 1;
      sum.parameters += spec.elements();
      sum.bytes += spec.bytes();
    }
    EXPECT_EQ(sum.tensors, row.tensors) << part_name(row.part);
    EXPECT_EQ(sum.parameters, row.parameters) << part_name(row.part);
    EXPECT_EQ(sum.bytes, row.bytes) << part_name(row.part);
    tensors += sum.tensors;
    parameters += sum.parameters;
    bytes += sum.bytes;
  }
  EXPECT_EQ(tensors, 96085);
  EXPECT_EQ(parameters, 763205315794);
  EXPECT_EQ(bytes, 510286023000);
}

TEST(V41Config, InventoryOfAShare) {
  const auto c = parse(kReleased);
  ASSERT_TRUE(c);
  InventoryOptions share;
  share.first_layer = 14;
  share.n_layers = 2;
  share.first_expert = 48;
  share.n_experts = 48;
  share.engram_tables = share.draft = share.vision = false;
  int64_t experts = 0;
  for (const auto& spec : inventory(*c, share)) {
    if (spec.part == Part::routed_experts) ++experts;
    EXPECT_TRUE(spec.part != Part::draft && spec.part != Part::vision && spec.part != Part::engram_tables)
        << spec.name;
    EXPECT_TRUE(!spec.name.starts_with("layers.") || spec.name.starts_with("layers.14.") ||
                spec.name.starts_with("layers.15."))
        << spec.name;
  }
  EXPECT_EQ(experts, 2 * 48 * 3);
}

TEST(V41Config, FlatFormAndDefaults) {
  const auto flat = parse(kTiny);
  ASSERT_TRUE(flat) << flat.error().message;
  EXPECT_FALSE(flat->vision.has_value());
  EXPECT_FALSE(flat->quant.fp8);
  EXPECT_FALSE(flat->yarn.on);  // never assumed
  EXPECT_EQ(flat->dspark.target_layers, (std::vector<int32_t>{7, 8, 9}));
  EXPECT_EQ(flat->ratios.size(), 12u);
  EXPECT_EQ(flat->rms_eps, 1e-20);
  const auto bare = parse(R"({"model_type":"deepseek_v41"})");
  ASSERT_TRUE(bare) << bare.error().message;
  EXPECT_EQ(bare->kv_sources, (std::vector<int32_t>{2, 8, 14, 20}));
  EXPECT_EQ(bare->index_sources, (std::vector<int32_t>{2, 8, 14, 20, 24, 28, 32, 36}));
  EXPECT_EQ(bare->candidate_source, 20);
  std::vector<int32_t> released = parse(kReleased)->ratios;
  released.resize(40);
  EXPECT_EQ(bare->ratios, released);
  EXPECT_TRUE(bare->engram.layers.empty());
  EXPECT_EQ(bare->dspark.n_stages, 0);
  const auto seven = parse(R"({"num_hidden_layers":7})");
  ASSERT_TRUE(seven) << seven.error().message;
  EXPECT_EQ(seven->ratios, (std::vector<int32_t>{0, 0, 2, 2, 2, 1, 1}));
  EXPECT_EQ(seven->kv_sources, (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(seven->index_sources, (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(seven->candidate_source, 5);
  EXPECT_EQ(parse(R"({"num_hidden_layers":1})")->first_decoder_layer(), 1);
}

TEST(V41Config, EngramTablesFollowThePrimes) {
  EngramConfig e;
  e.layers = {1, 14};
  EXPECT_EQ(engram_table_rows(e), (std::vector<int64_t>{384006168, 384016682}));
  e.vocab_size = 64;
  e.n_heads = 2;
  EXPECT_EQ(engram_table_rows(e),
            (std::vector<int64_t>{67 + 71 + 73 + 79 + 83 + 89, 97 + 101 + 103 + 107 + 109 + 113}));
  const auto derived = tiny_with("engram_num_embeddings", "null");
  ASSERT_TRUE(derived) << derived.error().message;
  EXPECT_EQ(derived->engram.table_rows, (std::vector<int64_t>{462, 630}));
}

TEST(V41Config, ReferenceNamesAndRopeParameters) {
  const auto c = parse(
      R"({"dim":128,"n_layers":4,"n_heads":4,"head_dim":64,"rope_head_dim":16,"vocab_size":320,"compress_ratios":[0,2,2,1],
    "kv_source_layers":[1,3],"index_source_layers":[1,3],"candidate_source_layer":-1,"index_head_dim":32,"n_activated_experts":2,
    "moe_inter_dim":64,"o_groups":2,"rope_factor":16,"original_seq_len":65536,"score_func":"sigmoid","route_scale":2.0,"norm_eps":1e-6,
    "window_size":64,"max_seq_len":4096,"engram_pad_id":3,"n_mtp_layers":0})");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->hidden, 128);
  EXPECT_EQ(c->kv_sources, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(c->candidate_source, -1);
  EXPECT_EQ(c->n_experts_per_token, 2);
  EXPECT_EQ(c->score, ScoreFunction::sigmoid);
  EXPECT_EQ(c->routed_scaling, 2.0);
  EXPECT_EQ(c->rms_eps, 1e-6);
  EXPECT_EQ(c->window, 64);
  EXPECT_EQ(c->engram.pad_token, 3);
  EXPECT_TRUE(c->yarn.on);
  EXPECT_EQ(c->yarn.factor, 16);
  const auto resaved = tiny_with(
      "rope_parameters", R"({"main":{"rope_type":"default","rope_theta":5000},"compress":{"rope_type":"yarn",
    "rope_theta":70000,"factor":4,"beta_fast":16,"beta_slow":2,"original_max_position_embeddings":1024}})");
  ASSERT_TRUE(resaved) << resaved.error().message;
  EXPECT_EQ(resaved->rope_theta, 5000);
  EXPECT_EQ(resaved->compress_rope_theta, 70000);
  EXPECT_EQ(resaved->yarn.factor, 4);
  EXPECT_EQ(resaved->yarn.beta_fast, 16);
  EXPECT_EQ(resaved->yarn.original_context, 1024);
  const auto v4_spelling = tiny_with("rope_scaling", R"({"type":"yarn","factor":8})");
  ASSERT_TRUE(v4_spelling);
  EXPECT_EQ(v4_spelling->yarn.factor, 8);
  EXPECT_TRUE(fails_with(tiny_with("dim", "64"), {"hidden_size = 128", "dim = 64"}));
}

struct Broken {
  std::string_view field, value;
  std::vector<std::string> words;
};
void PrintTo(const Broken& b, std::ostream* out) { *out << b.field << " = " << b.value; }

class V41ConfigRefuses : public testing::TestWithParam<Broken> {};

TEST_P(V41ConfigRefuses, WithFieldAndValue) {
  const auto [field, value, words] = GetParam();
  const auto config = tiny_with(field, value);
  EXPECT_TRUE(fails_with(config, words)) << field << " = " << value;
}

INSTANTIATE_TEST_SUITE_P(
    Rules, V41ConfigRefuses,
    testing::Values(
        Broken{"model_type", R"("deepseek_v4")", {"model_type", "deepseek_v4"}},
        Broken{"num_key_value_heads", "2", {"num_key_value_heads = 2"}},
        Broken{"topk_method", R"("greedy")", {"topk_method", "greedy"}},
        Broken{"hidden_act", R"("gelu")", {"hidden_act", "gelu"}},
        Broken{"attention_bias", "true", {"attention_bias = true"}},
        Broken{"tie_word_embeddings", "true", {"tie_word_embeddings = true"}},
        Broken{"scoring_func", R"("relu")", {"scoring_func", "relu"}},
        Broken{"n_shared_experts", "2", {"n_shared_experts = 2"}}, Broken{"n_group", "4", {"n_group = 4"}},
        Broken{"num_hash_layers", "3", {"num_hash_layers = 3"}}, Broken{"hidden_size", "-1", {"hidden_size = -1"}},
        Broken{"hidden_size", "1e9", {"hidden_size = 1e9"}}, Broken{"hidden_size", R"("128")", {"hidden_size"}},
        Broken{"vocab_size", "0", {"vocab_size = 0"}}, Broken{"head_dim", "48", {"head_dim = 48", "32"}},
        Broken{"index_head_dim", "40", {"index_head_dim = 40"}},
        Broken{"qk_rope_head_dim", "15", {"qk_rope_head_dim = 15"}},
        Broken{"qk_rope_head_dim", "64", {"qk_rope_head_dim = 64", "index_head_dim = 32"}},
        Broken{"o_groups", "3", {"num_attention_heads = 4", "o_groups = 3"}},
        Broken{"num_experts_per_tok", "9", {"num_experts_per_tok = 9", "8"}},
        Broken{"rms_norm_eps", "-1", {"rms_norm_eps = -1"}}, Broken{"gate_temp", "0", {"gate_temp = 0"}},
        Broken{"hc_mult", "0", {"hc_mult = 0"}}, Broken{"hc_sinkhorn_iters", "0", {"hc_sinkhorn_iters"}},
        Broken{"compress_ratios", "[0,0,2]", {"compress_ratios has 3", "10"}}));

INSTANTIATE_TEST_SUITE_P(
    Sources, V41ConfigRefuses,
    testing::Values(
        Broken{"compress_ratios", "[0,0,2,2,2,2,1,1,1,1,0,0,0]", {"compress_ratios has 13"}},
        Broken{"compress_ratios", "[0,0,2,2,2,2,1,1,1,1,1,0]", {"compress_ratios[10] = 1", "draft"}},
        Broken{"compress_ratios", "[0,0,4,4,4,4,1,1,1,1]", {"compress_ratios[2] = 4", "not supported"}},
        Broken{"compress_ratios", "[0,0,2,2,0,2,1,1,1,1]", {"layer 4", "compress_ratios entry is 0"}},
        Broken{"compress_ratios", "[0,0,2,1,2,2,1,1,1,1]", {"layer 3", "kv source 2"}},
        Broken{"compress_ratios", "[0,2,2,2,2,2,1,1,1,1]", {"layer 1", "no kv_source_layer_ids"}},
        Broken{"compress_ratios", "[0,0,2,2,2,2,1,1,1,\"1\"]", {"compress_ratios"}},
        Broken{"kv_source_layer_ids", "[2,6,4]", {"kv_source_layer_ids", "rise"}},
        Broken{"kv_source_layer_ids", "[2,4,6,7]", {"layer 7", "index_source_layer_ids lacks"}},
        Broken{"kv_source_layer_ids", "[2,4,10]", {"kv_source_layer_ids", "10"}},
        Broken{"kv_source_layer_ids", "[]", {"layer 2", "kv_source_layer_ids"}},
        Broken{"index_source_layer_ids", "[4,6,8]", {"layer 2", "index_source_layer_ids"}},
        Broken{"index_source_layer_ids", "[1,2,4,6]", {"layer 1", "compress_ratios entry is 0"}},
        Broken{"candidate_source_layer_id", "7", {"candidate_source_layer_id = 7"}},
        Broken{"candidate_source_layer_id", "4", {"candidate_source_layer_id = 4", "later index source 6"}},
        Broken{"candidate_topk_blocks", "0", {"candidate_topk_blocks"}},
        Broken{"index_topk", "0", {"index_topk"}}));

INSTANTIATE_TEST_SUITE_P(
    Rest, V41ConfigRefuses,
    testing::Values(
        Broken{"engram_num_embeddings", "[462,631]", {"engram_num_embeddings[1] = 631", "layer 4", "630"}},
        Broken{"engram_num_embeddings", "[462]", {"engram_num_embeddings has 1", "2"}},
        Broken{"engram_layer_ids", "[4,1]", {"engram_layer_ids", "rise"}},
        Broken{"engram_layer_ids", "[1,10]", {"engram_layer_ids", "10"}},
        Broken{"engram_n_heads", "257", {"engram_n_heads = 257"}},
        Broken{"engram_pad_token_id", "320", {"engram_pad_token_id = 320"}},
        Broken{"dspark_noise_token_id", "null", {"dspark_noise_token_id = 128799", "320"}},
        Broken{"dspark_target_layer_ids", "[9,8]", {"dspark_target_layer_ids"}},
        Broken{"dspark_target_layer_ids", "[10]", {"dspark_target_layer_ids", "10"}},
        Broken{"dspark_num_experts_per_tok", "5", {"dspark_num_experts_per_tok = 5"}},
        Broken{"eos_token_id", "320", {"eos_token_id = 320"}}, Broken{"eos_token_id", "[1,2]", {"eos_token_id"}},
        Broken{"rope_scaling", R"({"rope_type":"linear","factor":2})", {"rope_type", "linear"}},
        Broken{"rope_scaling", R"({"rope_type":"yarn"})", {"factor"}},
        Broken{"rope_scaling",
               R"({"rope_type":"yarn","factor":4,"attention_factor":1.2})",
               {"attention_factor = 1.2"}},
        Broken{"rope_scaling", "[1]", {"rope_scaling"}},
        Broken{"rope_parameters",
               R"({"main":{"rope_type":"yarn","factor":4}})",
               {"rope_parameters.main", "rope_type"}},
        Broken{"quantization_config", R"({"quant_method":"gptq"})", {"quant_method", "gptq"}},
        Broken{"quantization_config", R"({"weight_block_size":[128,128]})", {"weight_block_size", "[128,128]"}},
        Broken{"quantization_config", R"({"scale_fmt":"float"})", {"scale_fmt", "float"}},
        Broken{"quantization_config", R"({"expert_dtype":"int4"})", {"expert_dtype", "int4"}},
        Broken{"quantization_config", R"({"activation_scheme":"static"})", {"activation_scheme", "static"}},
        Broken{"vision_config", R"({"num_attention_heads":3})", {"vision_config", "1024"}},
        Broken{"vision_config", "{}", {"image_token_id = 129264", "320"}},
        Broken{"vision_config", "7", {"vision_config"}}, Broken{"text_config", "[]", {"text_config"}}));

TEST(V41Config, QuantisedDimensionsAreMultiplesOf32) {
  for (const std::string_view field :
       {"hidden_size", "q_lora_rank", "o_lora_rank", "moe_intermediate_size", "engram_head_dim"}) {
    Json json = *Json::parse(kTiny);
    json.set(field, 40);
    EXPECT_TRUE(config_from_json(json, "config.json")) << field << " without quantisation";
    json.set("quantization_config", *Json::parse(R"({"quant_method":"fp8"})"));
    EXPECT_TRUE(fails_with(config_from_json(json, "config.json"), {std::string(field) + " = 40", "32"}));
  }
}

TEST(V41Config, RefusesProductsThatLeaveTheRange) {
  Json json = *Json::parse(kTiny);
  json.set("head_dim", 8192);
  json.set("num_attention_heads", 4096);
  EXPECT_TRUE(fails_with(config_from_json(json, "config.json"), {"num_attention_heads * head_dim = 33554432"}));
}

TEST(V41Config, RefusesWhatIsNoObject) {
  for (const std::string_view text : {"[]", "1", "\"x\"", "null"})
    EXPECT_TRUE(fails_with(parse(text), {"config.json"}));
}

}  // namespace
}  // namespace gannet::deepseek_v41
