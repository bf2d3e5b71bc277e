// SmolLM2-135M on a device through the engine's executor: the logits of the CPU, bit for bit, at any batch, with
// and without graphs. Once with the model file, as in tests/model/llama_smollm2_test.cc (skipped without it), once
// with random bf16 weights of the same shapes.
#include <cstdlib>
#include <filesystem>
#include <random>

#include "cuda/device_case.h"
#include "engine/executor.h"
#include "model/llama/inventory.h"
#include "model/llama/model.h"

namespace gannet {
namespace {

std::string model_path() {
  const char* path = std::getenv("GANNET_TEST_SMOLLM2");
  return path != nullptr ? path : std::string(GANNET_SOURCE_DIR) + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

constexpr int32_t kBlock = llama::kBlockTokens, kContext = 512;

struct Runner {
  std::unique_ptr<Model> model;
  std::unique_ptr<engine::Executor> executor;
  std::vector<std::vector<int32_t>> tables;

  Runner(const weights::Checkpoint& checkpoint, const llama::Config& config, Device* device, bool graphs,
         int32_t n_seqs, uint32_t seed) {
    Machine machine = this_machine();
    machine.device = device;
    model = *llama::create(checkpoint, config, Numerics::precise, machine);
    engine::ExecutorOptions options;
    options.n_blocks = n_seqs * (kContext / kBlock);
    options.n_slots = n_seqs;
    options.max_rows = std::max(512, n_seqs);
    options.max_logit_rows = n_seqs;
    options.max_context = kContext;
    options.n_threads = 8;
    options.device = device;
    options.graphs = graphs;
    executor = *engine::Executor::create(*model, options);
    std::vector<int32_t> order(static_cast<size_t>(options.n_blocks));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (int32_t s = 0; s < n_seqs; ++s)
      tables.emplace_back(order.begin() + s * (kContext / kBlock), order.begin() + (s + 1) * (kContext / kBlock));
  }
  // Logits of the last row of each piece.
  std::vector<std::vector<float>> step(const std::vector<int32_t>& seqs, const std::vector<int32_t>& first,
                                       const std::vector<std::vector<int32_t>>& tokens) {
    std::vector<engine::SeqChunk> chunks;
    for (size_t i = 0; i < seqs.size(); ++i)
      chunks.push_back({seqs[i], tables[static_cast<size_t>(seqs[i])], tokens[i], first[i],
                        first[i] + static_cast<int32_t>(tokens[i].size()), 1});
    const View logits = executor->run(chunks);
    std::vector<std::vector<float>> out;
    for (size_t i = 0; i < seqs.size(); ++i) {
      const float* row = logits.as<float>() + static_cast<int64_t>(i) * logits.dim(1);
      out.emplace_back(row, row + logits.dim(1));
    }
    return out;
  }
};

int32_t argmax(const std::vector<float>& row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

std::vector<int32_t> prompt(int32_t length, uint64_t seed) {
  test::Random random(seed);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < length; ++i) ids.push_back(random.below(49152));
  return ids;
}

// Greedy text of n_seqs prompts of different lengths, each prefilled in pieces of `piece`, decoded together.
// Returns each sequence's tokens and the last logits.
struct Text {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::vector<float>> last;
  bool operator==(const Text&) const = default;
};
Text greedy(Runner& r, const std::vector<int32_t>& seeds, int32_t piece, int32_t n_tokens) {
  Text text;
  std::vector<int32_t> seqs, done, next;
  for (size_t s = 0; s < seeds.size(); ++s) {
    const auto ids = prompt(5 + seeds[s] * 7 % 90, static_cast<uint64_t>(seeds[s]));
    std::vector<float> logits;
    for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(piece))
      logits =
          r.step({static_cast<int32_t>(s)}, {static_cast<int32_t>(at)},
                 {{ids.begin() + static_cast<int64_t>(at),
                   ids.begin() + static_cast<int64_t>(std::min(ids.size(), at + static_cast<size_t>(piece)))}})[0];
    seqs.push_back(static_cast<int32_t>(s));
    done.push_back(static_cast<int32_t>(ids.size()));
    next.push_back(argmax(logits));
    text.tokens.push_back({next.back()});
  }
  for (int32_t i = 1; i < n_tokens; ++i) {
    std::vector<std::vector<int32_t>> rows;
    for (const int32_t id : next) rows.push_back({id});
    text.last = r.step(seqs, done, rows);
    for (size_t s = 0; s < seqs.size(); ++s) {
      ++done[s];
      text.tokens[s].push_back(next[s] = argmax(text.last[s]));
    }
  }
  return text;
}

constexpr const char* kConfig = R"({"model_type": "llama", "hidden_size": 576, "intermediate_size": 1536,
  "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152,
  "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2})";

class CudaSmolLm2 : public testing::TestWithParam<bool> {  // from the file?
 protected:
  void SetUp() override {
    GANNET_NEEDS_DEVICE();
    if (!GetParam()) {
      config = *llama::config_from_json(*Json::parse(kConfig), "config");
      checkpoint =
          std::make_unique<weights::Checkpoint>(*weights::Checkpoint::synthetic("llama", llama::inventory(config)));
      return;
    }
    if (!std::filesystem::exists(model_path())) GTEST_SKIP() << "there is no " << model_path();
    checkpoint = std::make_unique<weights::Checkpoint>(*weights::Checkpoint::open(model_path()));
    config = *llama::config_of(*checkpoint);
  }
  Runner runner(Device* device, bool graphs, int32_t n_seqs, uint32_t seed) {
    return {*checkpoint, config, device, graphs, n_seqs, seed};
  }
  std::unique_ptr<weights::Checkpoint> checkpoint;
  llama::Config config;
};
INSTANTIATE_TEST_SUITE_P(Weights, CudaSmolLm2, testing::Bool(),
                         [](const auto& param) { return param.param ? "file" : "synthetic"; });

TEST_P(CudaSmolLm2, LogitsAndTextAreThoseOfTheCpu) {
  Runner cpu = runner(nullptr, false, 3, 1), gpu = runner(test::device(), true, 3, 2);
  const Text want = greedy(cpu, {1, 2, 3}, 512, 48), got = greedy(gpu, {1, 2, 3}, 512, 48);
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_TRUE(got.last == want.last);
}

TEST_P(CudaSmolLm2, BatchesPiecesAndGraphsChangeNoBit) {
  std::vector<int32_t> seeds(256);
  for (size_t i = 0; i < seeds.size(); ++i) seeds[i] = static_cast<int32_t>(i);
  Runner all = runner(test::device(), true, 256, 3);
  const Text want = greedy(all, seeds, 512, 12);
  for (const auto& [n, piece, graphs] :
       {std::tuple{1, 512, false}, {1, 7, true}, {8, 32, true}, {64, 512, false}}) {
    Runner r = runner(test::device(), graphs, n, static_cast<uint32_t>(n));
    const Text got = greedy(r, {seeds.begin(), seeds.begin() + n}, piece, 12);
    for (size_t s = 0; s < static_cast<size_t>(n); ++s) {
      EXPECT_EQ(got.tokens[s], want.tokens[s]) << "batch " << n << " pieces of " << piece;
      EXPECT_TRUE(got.last[s] == want.last[s]) << "batch " << n << " pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace gannet
