#include "engine/synthetic_config.h"

#include <gtest/gtest.h>

#include "engine/loaded_model.h"
#include "support/model_files.h"

namespace gannet::engine {
namespace {

using test::fails_with;

LoadOptions mini() {
  LoadOptions options;
  options.path = GANNET_SOURCE_DIR "/models/gannet-mini";
  options.synthetic_weights = true;
  return options;
}

TEST(SyntheticConfig, CutsListsAndIds) {
  Json config = *Json::parse(R"({"bos_token_id": 7, "text_config": {"num_hidden_layers": 6, "n_routed_experts": 16,
    "compress_ratios": [0, 2, 2, 1, 1, 1, 0, 0], "kv_source_layer_ids": [1, 3], "index_source_layer_ids": [1, 3, 5],
    "engram_layer_ids": [1, 4], "engram_num_embeddings": [100, 200], "candidate_source_layer_id": 3,
    "num_nextn_predict_layers": 2, "dspark_target_layer_ids": [2, 5]}})");
  ASSERT_TRUE(cut_config(config, {.layers = 3, .experts = 4}, "x"));
  EXPECT_EQ(config.dump(), R"({"bos_token_id":7,"text_config":{"num_hidden_layers":3,"n_routed_experts":4,)"
                           R"("compress_ratios":[0,2,2],"kv_source_layer_ids":[1],"index_source_layer_ids":[1],)"
                           R"("engram_layer_ids":[1],"engram_num_embeddings":[100],"candidate_source_layer_id":-1,)"
                           R"("num_nextn_predict_layers":0,"dspark_target_layer_ids":[2]}})");
}

TEST(SyntheticConfig, NothingAskedChangesNothing) {
  Json config = *Json::parse(R"({"num_hidden_layers": 6, "layer_types": ["a", "b"]})");
  const Json before = config;
  ASSERT_TRUE(cut_config(config, {}, "x"));
  EXPECT_EQ(config, before);
}

TEST(SyntheticConfig, RefusesMoreThanThereIs) {
  Json config = *Json::parse(R"({"num_hidden_layers": 6})");
  EXPECT_TRUE(fails_with(cut_config(config, {.layers = 7}, "c.json"), {"--weights-layers is 7, c.json has 6"}));
  EXPECT_TRUE(fails_with(cut_config(config, {.experts = 2}, "c.json"),
                         {"--weights-experts is 2, c.json has no n_routed_experts"}));
}

TEST(SyntheticConfig, ACutModelLoadsAndIsSmaller) {
  const Machine machine = this_machine();
  const auto whole = LoadedModel::load(mini(), machine);
  ASSERT_TRUE(whole) << whole.error().message;
  for (const int32_t layers : {1, 2, 3, 5, 7, 9, 10}) {
    LoadOptions options = mini();
    options.synthetic_cut = {.layers = layers, .experts = 4};
    const auto cut = LoadedModel::load(options, machine);
    ASSERT_TRUE(cut) << layers << ": " << cut.error().message;
    EXPECT_LT((*cut)->checkpoint->payload_bytes(), (*whole)->checkpoint->payload_bytes()) << layers;
    EXPECT_NE((*cut)->weights_id, (*whole)->weights_id);
  }
  LoadOptions few = mini();
  few.synthetic_cut = {.experts = 3};  // each row takes 4
  EXPECT_TRUE(fails_with(LoadedModel::load(few, machine), {"n_routed_experts"}));
}

}  // namespace
}  // namespace gannet::engine
