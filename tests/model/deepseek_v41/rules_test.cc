// Rules that ordinary goldens cannot see, and what the model refuses.
#include <gtest/gtest.h>

#include <cmath>

#include "random_model.h"
#include "runner.h"

namespace gannet::deepseek_v41::test {
namespace {

class Rules : public ::testing::Test {
 protected:
  Rules() {
    config.n_layers = 3;
    config.ratios = {0, 2, 1};
    config.kv_sources = config.index_sources = {1, 2};
    config.candidate_source = -1;
    config.engram.layers = {1};
    config.engram.table_rows = engram_table_rows(config.engram);
    config.dspark = {};
    config.sinkhorn_iters = 20;
    config.rms_eps = 1e-20;
    checkpoint.emplace(std::move(*weights::Checkpoint::synthetic("deepseek_v41", inventory(config), {7, 1 << 20})));
    for (int32_t i = 0; i < 24; ++i) {
      text.tokens.push_back(i % config.vocab);
      text.is_image.push_back(1);  // embeddings of any size can be given
      for (int32_t c = 0; c < config.hidden; ++c)
        text.embeds.push_back(std::sin(static_cast<float>(i * 37 + c * 11)));
    }
  }
  static Config base() {
    Random random(1);
    return random_config(random);
  }
  std::vector<int32_t> map() const {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < config.vocab; ++i) ids.push_back(i % config.engram.compressed_vocab);
    return ids;
  }
  Result<std::unique_ptr<DeepseekV41>> load(const Config& c, std::vector<int32_t> token_map) const {
    Options options;
    options.numerics = Numerics::float32;
    options.trim_decoder = false;
    options.n_threads = 1;
    return DeepseekV41::load(c, *checkpoint, std::move(token_map), options, this_machine());
  }
  // Logits of the text, its embeddings scaled.
  std::vector<float> logits(const Config& c, float scale) const {
    auto model = load(c, map());
    GANNET_CHECK(model.has_value(), std::string_view(model.error().message));
    Text scaled = text;
    for (float& x : scaled.embeds) x *= scale;
    Runner run(**model, 1, text.size(), text.size(), 1, 1);
    const Piece piece{0, &scaled, 0, text.size(), text.size(), text.size()};
    return run.run(std::span(&piece, 1));
  }
  static float gap(const std::vector<float>& a, const std::vector<float>& b) {
    float worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const float d = std::fabs(a[i] - b[i]);
      worst = d <= worst ? worst : d;
    }
    return worst;
  }

  Config config = base();
  std::optional<weights::Checkpoint> checkpoint;
  Text text;
};

// Embeddings of 1e-6: their mean square is 1e-12, far above 1e-20 and far below 1e-6.
TEST_F(Rules, RmsNormEpsMattersForTinyStreams) {
  Config other = config;
  other.rms_eps = 1e-6;
  EXPECT_GT(gap(logits(config, 1e-6f), logits(other, 1e-6f)), 0.1f);
  other.rms_eps = 1e-20;
  EXPECT_EQ(gap(logits(config, 1e-6f), logits(other, 1e-6f)), 0);
}

TEST_F(Rules, SinkhornCountAndHcEpsReachTheLogits) {
  const std::vector<float> want = logits(config, 1);
  Config other = config;
  other.sinkhorn_iters = 2;
  EXPECT_GT(gap(want, logits(other, 1)), 1e-5f);
  other = config;
  other.hc_eps = 1e-3;
  EXPECT_GT(gap(want, logits(other, 1)), 1e-5f);
}

TEST_F(Rules, TokenMapOfAnotherCountIsRefused) {
  std::vector<int32_t> few = map();
  for (int32_t& id : few) id = std::min(id, 20);
  auto model = load(config, few);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, Errc::bad_file);
  EXPECT_NE(model.error().message.find("engram_compressed_vocab_size is 23"), std::string::npos)
      << model.error().message;
  model = load(config, {0, 1, 2});
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().message.find("3 entries"), std::string::npos) << model.error().message;
}

TEST_F(Rules, AMissingOrMisshapenTensorIsNamed) {
  Config other = config;
  other.q_rank = 64;
  auto model = load(other, map());
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().message.find("layers.0.attn.wq_a.weight"), std::string::npos) << model.error().message;
  other = config;
  other.n_layers = 4;
  other.ratios.push_back(1);
  model = load(other, map());
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().message.find("layers.3."), std::string::npos) << model.error().message;
}

TEST_F(Rules, TheWorkspaceIsNeverShort) {
  Random random(77);
  for (int i = 0; i < 30; ++i) {
    RandomModel m = random_model(random, i % 2 == 0 ? Numerics::reference : Numerics::float32);
    Text many;
    for (int32_t t = 0; t < 150; ++t) many.tokens.push_back(pick(random, 0, m.config.vocab - 1));
    const int32_t rows = pick(random, 1, 150);
    Runner run(*m.full, 1, 150, rows, 1, 1);
    const Piece piece{0, &many, 0, rows, rows, rows};
    run.run(std::span(&piece, 1));
    EXPECT_LE(run.peak_bytes(), m.full->workspace_bytes(rows, rows, 150) - (int64_t{64} << 20)) << rows << " rows";
  }
}

}  // namespace
}  // namespace gannet::deepseek_v41::test
