// A row's bits depend on the row alone: chunks, batches, block tables and threads change nothing.
#include <cstring>
#include <map>
#include <random>

#include "model/llama/inventory.h"
#include "model/llama/model.h"
#include "model/llama_runner.h"

namespace gannet::llama {
namespace {

using test::LlamaRunner;
using test::Piece;

Config small(Family family) {
  Config c;
  c.family = family;
  c.n_layers = 3;
  c.hidden = 48;
  c.n_heads = 4;
  c.n_kv_heads = 2;
  c.head_dim = 16;
  c.ffn = 80;
  c.vocab = 61;
  c.max_context = 512;
  c.query_scale = 0.25;
  c.rope.theta = c.rope_local.theta = 10000;
  return c;
}

// One config a family, with what sets it apart.
std::map<std::string, Config> configs() {
  std::map<std::string, Config> all;
  all["llama"] = small(Family::llama);
  all["llama"].rope_pairs = RopePairs::interleaved;
  all["llama"].tied_embeddings = true;
  all["qwen2"] = small(Family::qwen2);
  all["qwen2"].qkv_bias = true;
  all["qwen3"] = small(Family::qwen3);
  all["qwen3"].qk_norm = true;
  all["qwen3"].n_kv_heads = 1;
  Config& moe = all["qwen3_moe"] = all["qwen3"];
  moe.family = Family::qwen3_moe;
  moe.n_experts = 7;
  moe.n_experts_per_token = 3;
  moe.expert_ffn = 32;
  moe.norm_topk_prob = true;
  moe.is_moe = {true, false, true};
  Config& gemma = all["gemma3"] = small(Family::gemma3);
  gemma.qk_norm = gemma.norm_plus_one = gemma.post_norms = gemma.tied_embeddings = true;
  gemma.activation = Activation::gelu_tanh;
  gemma.embedding_scale = 6.9282f;
  gemma.sliding_window = 7;
  gemma.is_local = {true, true, false};
  gemma.rope.theta = 1e6;
  return all;
}

struct Loaded {
  explicit Loaded(const Config& config, Numerics numerics = Numerics::precise)
      : checkpoint(*weights::Checkpoint::synthetic(std::string(family_name(config.family)), inventory(config))),
        model(*create(checkpoint, config, numerics, this_machine())) {}
  weights::Checkpoint checkpoint;
  std::unique_ptr<Model> model;
};

std::vector<int32_t> tokens(int32_t n, std::mt19937& random, int32_t vocab) {
  std::vector<int32_t> out(static_cast<size_t>(n));
  for (int32_t& t : out) t = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab));
  return out;
}

// Runs sequences to their ends by random pieces, several sequences a step, and gathers each one's logits.
std::vector<std::vector<float>> run_in_pieces(LlamaRunner& runner, const std::vector<std::vector<int32_t>>& texts,
                                              std::mt19937& random, int32_t largest_piece) {
  std::vector<std::vector<float>> logits(texts.size());
  std::vector<size_t> done(texts.size());
  while (true) {
    std::vector<Piece> pieces;
    for (size_t s = 0; s < texts.size(); ++s) {
      const size_t left = texts[s].size() - done[s];
      if (left == 0 || random() % 4 == 0) continue;
      const size_t n = std::min<size_t>(left, 1 + random() % static_cast<uint32_t>(largest_piece));
      pieces.push_back(
          {static_cast<int32_t>(s), static_cast<int32_t>(done[s]), std::span(texts[s]).subspan(done[s], n)});
      done[s] += n;
    }
    if (!pieces.empty()) {
      std::shuffle(pieces.begin(), pieces.end(), random);
      const std::vector<float> step = runner.run(pieces);
      auto at = step.begin();
      for (const Piece& piece : pieces) {
        const auto n = static_cast<int64_t>(piece.tokens.size()) * 61;
        auto& out = logits[static_cast<size_t>(piece.seq)];
        out.insert(out.end(), at, at + n);
        at += n;
      }
    }
    bool all = true;
    for (size_t s = 0; s < texts.size(); ++s) all = all && done[s] == texts[s].size();
    if (all) return logits;
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class LlamaRows : public testing::TestWithParam<std::tuple<std::string, Numerics>> {};

TEST_P(LlamaRows, OneShotEqualsEveryWayOfCuttingAndBatching) {
  const auto& [name, numerics] = GetParam();
  const Loaded loaded(configs().at(name), numerics);
  ASSERT_EQ(loaded.model->info().vocab, 61);
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<int32_t>> texts;
    for (int s = 0; s < 3; ++s) texts.push_back(tokens(1 + static_cast<int32_t>(random() % 60), random, 61));
    std::vector<std::vector<float>> alone;
    for (const auto& text : texts) {
      LlamaRunner runner(*loaded.model, 1, 64, 1, static_cast<uint32_t>(random()));
      const Piece piece{0, 0, text};
      alone.push_back(runner.run(std::span(&piece, 1)));
      for (const float x : alone.back()) ASSERT_TRUE(std::isfinite(x));
    }
    for (const int32_t largest_piece : {1, 5, 60}) {
      LlamaRunner runner(*loaded.model, 3, 64, 1 + round % 2, static_cast<uint32_t>(random()));
      const auto pieces = run_in_pieces(runner, texts, random, largest_piece);
      for (size_t s = 0; s < texts.size(); ++s)
        ASSERT_TRUE(same_bits(pieces[s], alone[s])) << "round " << round << ", pieces up to " << largest_piece
                                                    << ", sequence " << s << " of " << texts[s].size() << " tokens";
    }
  }
}

// Only rows that ask get logits, and they are the same ones.
TEST_P(LlamaRows, LastRowAloneEqualsLastOfAll) {
  const auto& [name, numerics] = GetParam();
  const Loaded loaded(configs().at(name), numerics);
  std::mt19937 random(8);
  const std::vector<int32_t> text = tokens(33, random, 61);
  LlamaRunner all(*loaded.model, 1, 64, 1, 1), last(*loaded.model, 1, 64, 2, 2);
  const Piece piece{0, 0, text};
  const std::vector<float> every = all.run(std::span(&piece, 1)), one = last.run(std::span(&piece, 1), true);
  EXPECT_TRUE(same_bits(one, {every.end() - 61, every.end()}));
}

INSTANTIATE_TEST_SUITE_P(Families, LlamaRows,
                         testing::Combine(testing::Values("llama", "qwen2", "qwen3", "qwen3_moe", "gemma3"),
                                          testing::Values(Numerics::precise, Numerics::float32)),
                         [](const auto& param) {
                           return std::get<0>(param.param) +
                                  (std::get<1>(param.param) == Numerics::float32 ? "_float32" : "_precise");
                         });

// The sizes that the executor asks for are enough: an arena of exactly that many bytes never overflows.
TEST(LlamaModel, WorkspaceIsEnoughForTheLargestStep) {
  for (const auto& [name, config] : configs()) {
    const Loaded loaded(config);
    Arena arena(loaded.model->workspace_bytes(130, 2, 140));  // LlamaRunner's own is larger
    EXPECT_GT(loaded.model->workspace_bytes(260, 2, 140), loaded.model->workspace_bytes(130, 2, 140)) << name;
    LlamaRunner runner(*loaded.model, 1, 140, 2, 3);
    std::mt19937 random(1);
    const std::vector<int32_t> text = tokens(130, random, 61);
    const Piece piece{0, 0, text};
    EXPECT_EQ(runner.run_in(arena, std::span(&piece, 1), true).size(), 61u) << name;
  }
}

TEST(LlamaModel, CacheIsPlainPages) {
  const Loaded loaded(configs().at("gemma3")), exact(configs().at("gemma3"), Numerics::float32);
  const kv::KvSpec& spec = loaded.model->kv_spec();
  EXPECT_EQ(spec.block_tokens, 16);
  EXPECT_TRUE(spec.rings.empty());
  ASSERT_EQ(spec.planes.size(), 6u);
  EXPECT_EQ(spec.planes[3].name, "layers.1.v");
  EXPECT_EQ(spec.planes[3].width, 32);
  EXPECT_EQ(spec.planes[3].tokens_per_row, 1);
  EXPECT_EQ(spec.planes[3].format, RowFormat::f16);
  EXPECT_EQ(exact.model->kv_spec().planes[3].format, RowFormat::f32);
}

// Beyond the window nothing of a local layer shows: with local layers alone, an early token cannot reach the end.
TEST(LlamaModel, SlidingWindowForgets) {
  Config config = configs().at("gemma3");
  config.is_local = {true, true, true};
  const Loaded loaded(config);
  std::mt19937 random(9);
  std::vector<int32_t> text = tokens(60, random, 61);
  const auto last = [&] {
    LlamaRunner runner(*loaded.model, 1, 64, 1, 4);
    const Piece piece{0, 0, text};
    return runner.run(std::span(&piece, 1), true);
  };
  const std::vector<float> before = last();
  const int32_t reach = 3 * (config.sliding_window - 1);  // each layer looks back window - 1 rows
  text[static_cast<size_t>(59 - reach - 1)] ^= 1;
  EXPECT_TRUE(same_bits(last(), before));
  text[static_cast<size_t>(59 - reach)] ^= 1;
  EXPECT_FALSE(same_bits(last(), before));
}

TEST(LlamaModel, MissingOrMisshapenWeightsAreNamed) {
  const Config config = configs().at("qwen2");
  auto specs = inventory(config);
  std::erase_if(specs, [](const auto& spec) { return spec.name == "model.layers.1.self_attn.k_proj.bias"; });
  const auto missing = *weights::Checkpoint::synthetic("qwen2", specs);
  const auto result = create(missing, config, Numerics::precise, this_machine());
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("model.layers.1.self_attn.k_proj.bias"), std::string::npos);
  Config wide = config;
  wide.ffn = 96;
  const auto narrow = *weights::Checkpoint::synthetic("qwen2", inventory(config));
  const auto misshapen = create(narrow, wide, Numerics::precise, this_machine());
  ASSERT_FALSE(misshapen.has_value());
  EXPECT_NE(misshapen.error().message.find("mlp.gate_proj.weight"), std::string::npos);
}

}  // namespace
}  // namespace gannet::llama
