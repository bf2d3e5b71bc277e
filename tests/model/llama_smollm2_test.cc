// The default model, SmolLM2-135M-Instruct in GGUF Q4_1, against transformers on the same dequantised weights
// (tests/golden/smollm2/make.py). The model file is looked for at models/, where tools/get_model.sh puts it, or at
// the path in GANNET_TEST_SMOLLM2; without it these tests are skipped.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "files/safetensors.h"
#include "model/llama/model.h"
#include "model/llama_runner.h"
#include "sample/logprobs.h"

namespace gannet::llama {
namespace {

using test::LlamaRunner;
using test::Piece;

std::string model_path() {
  const char* path = std::getenv("GANNET_TEST_SMOLLM2");
  return path != nullptr ? path : std::string(GANNET_SOURCE_DIR) + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

class SmolLm2 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!std::filesystem::exists(model_path())) return;
    checkpoint_ = new weights::Checkpoint(*weights::Checkpoint::open(model_path()));
    auto golden =
        files::SafeTensors::open(std::string(GANNET_SOURCE_DIR) + "/tests/golden/smollm2/golden.safetensors");
    ASSERT_TRUE(golden.has_value()) << golden.error().message;
    golden_ = new files::SafeTensors(std::move(*golden));
  }
  static void TearDownTestSuite() {
    delete checkpoint_;
    delete golden_;
  }
  void SetUp() override {
    if (checkpoint_ == nullptr) GTEST_SKIP() << "there is no " << model_path() << " (tools/get_model.sh gets it)";
    ASSERT_NE(golden_, nullptr);
  }

  static std::unique_ptr<Model> model(Numerics numerics) {
    return *create(*checkpoint_, *config_of(*checkpoint_), numerics, this_machine());
  }
  template <class T>
  static std::vector<T> golden(const std::string& name) {
    const files::TensorInfo* tensor = golden_->find(name);
    EXPECT_NE(tensor, nullptr) << name;
    std::vector<T> out(tensor->bytes.size() / sizeof(T));
    std::memcpy(out.data(), tensor->bytes.data(), out.size() * sizeof(T));
    return out;
  }

  static weights::Checkpoint* checkpoint_;
  static files::SafeTensors* golden_;
};
weights::Checkpoint* SmolLm2::checkpoint_ = nullptr;
files::SafeTensors* SmolLm2::golden_ = nullptr;

constexpr int64_t kVocab = 49152;
constexpr int kPrompts = 20, kGreedy = 64, kBest = 4;

// How far a logit may be from that of another fp32 implementation. Both round each of 30 layers' sums; the residual
// stream reaches some 10^2..10^3 there while logits are of order 10, so an ulp of the stream, 2^-24 * 10^3, is 6e-5
// of a logit unit, and several tens of such roundings add up in quadrature.
constexpr float kLogitBound = 1e-3f;

int32_t argmax(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

// 20 prompts, 64 tokens each. Rows are fed the golden's own tokens, all in one step: llama_rows_test.cc shows that
// a row's bits do not depend on that, and the last test here that decoding gives the same text.
TEST_F(SmolLm2, GreedyTextEqualsTransformers) {
  const auto smol = model(Numerics::float32);
  float worst = 0;
  int n_same = 0, n_near_ties = 0;
  for (int i = 0; i < kPrompts; ++i) {
    const std::string name = "prompt." + std::to_string(i) + ".";
    auto ids = golden<int32_t>(name + "ids");
    const auto greedy = golden<int32_t>(name + "greedy"), best_ids = golden<int32_t>(name + "best_ids");
    const auto best = golden<float>(name + "best_logits");
    ASSERT_EQ(greedy.size(), static_cast<size_t>(kGreedy));
    const size_t n_prompt = ids.size();
    ids.insert(ids.end(), greedy.begin(), greedy.end() - 1);
    LlamaRunner runner(*smol, 1, 256, 2, 1);
    const Piece pieces[2] = {{0, 0, std::span(ids).first(n_prompt - 1)},
                             {0, static_cast<int32_t>(n_prompt) - 1, std::span(ids).subspan(n_prompt - 1)}};
    if (n_prompt > 1) runner.run(std::span(pieces, 1), true);
    const std::vector<float> logits = runner.run(std::span(pieces + 1, 1));
    for (size_t t = 0; t < kGreedy; ++t) {
      const std::span<const float> row = std::span(logits).subspan(t * kVocab, kVocab);
      for (size_t b = 0; b < kBest; ++b)
        worst = std::max(worst, std::abs(row[static_cast<size_t>(best_ids[t * kBest + b])] - best[t * kBest + b]));
      if (argmax(row) == greedy[t]) {
        ++n_same;
        continue;
      }
      ++n_near_ties;
      EXPECT_LE(best[t * kBest] - best[t * kBest + 1], 2 * kLogitBound) << "prompt " << i << " step " << t;
    }
  }
  EXPECT_LE(worst, kLogitBound);
  EXPECT_EQ(n_same + n_near_ties, kPrompts * kGreedy);
  EXPECT_LE(n_near_ties, 3);
  std::printf("largest logit difference %.2e, %d of %d tokens equal, %d near-ties\n", static_cast<double>(worst),
              n_same, kPrompts * kGreedy, n_near_ties);
}

TEST_F(SmolLm2, FullRowOfLogits) {
  const auto smol = model(Numerics::float32);
  for (const int i : {0, kPrompts / 2}) {
    const std::string name = "prompt." + std::to_string(i) + ".";
    const auto ids = golden<int32_t>(name + "ids");
    const auto want = golden<float>(name + "logits");
    LlamaRunner runner(*smol, 1, 256, 2, 2);
    const Piece piece{0, 0, ids};
    const std::vector<float> got = runner.run(std::span(&piece, 1), true);
    ASSERT_EQ(got.size(), want.size());
    for (size_t v = 0; v < got.size(); ++v) ASSERT_LE(std::abs(got[v] - want[v]), kLogitBound) << v;
  }
}

// Negative log-likelihoods of the shipped text, windows of 512 tokens.
std::vector<double> text_nll(Model& smol, const std::vector<int32_t>& ids) {
  const sample::VocabOps& ops = sample::vocab_ops(this_machine());
  std::vector<double> nll;
  for (size_t begin = 0; begin < ids.size(); begin += 512) {
    const std::span<const int32_t> window =
        std::span(ids).subspan(begin, std::min<size_t>(512, ids.size() - begin));
    LlamaRunner runner(smol, 1, 512, 2, 3);
    for (size_t done = 0; done < window.size(); done += 128) {
      const Piece piece{0, static_cast<int32_t>(done),
                        window.subspan(done, std::min<size_t>(128, window.size() - done))};
      const std::vector<float> logits = runner.run(std::span(&piece, 1));
      for (size_t t = 0; t < piece.tokens.size() && done + t + 1 < window.size(); ++t) {
        const std::span<const float> row = std::span(logits).subspan(t * kVocab, kVocab);
        nll.push_back(sample::log_sum_exp(row, ops) - row[static_cast<size_t>(window[done + t + 1])]);
      }
    }
  }
  return nll;
}

TEST_F(SmolLm2, PerplexityWithinATenthOfAPercent) {
  const auto ids = golden<int32_t>("text.ids");
  const auto want = golden<float>("text.nll");
  for (const Numerics numerics : {Numerics::float32, Numerics::precise}) {
    const std::vector<double> got = text_nll(*model(numerics), ids);
    ASSERT_EQ(got.size(), want.size());
    double sum = 0, want_sum = 0, worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      sum += got[i];
      want_sum += double{want[i]};
      worst = std::max(worst, std::abs(got[i] - double{want[i]}));
    }
    const auto n = static_cast<double>(got.size());
    const double perplexity = std::exp(sum / n), expected = std::exp(want_sum / n);
    EXPECT_LE(std::abs(perplexity / expected - 1), 1e-3);
    if (numerics == Numerics::float32) {
      EXPECT_LE(worst, 2 * kLogitBound);
    }
    std::printf("%s: perplexity %.5f, transformers %.5f, largest difference of one token %.1e\n",
                numerics == Numerics::float32 ? "float32" : "precise", perplexity, expected, worst);
  }
}

struct Truth {
  double mean_kl = 0;  // from `float32`
  int n_same = 0;      // rows whose likeliest token is that of `float32`
};

// Over the first `n` tokens of the shipped text.
Truth truth_of(Model& exact, Model& other, std::span<const int32_t> ids) {
  LlamaRunner a(exact, 1, 256, 2, 4), b(other, 1, 256, 2, 5);
  const Piece piece{0, 0, ids};
  const std::vector<float> p = a.run(std::span(&piece, 1)), q = b.run(std::span(&piece, 1));
  const sample::VocabOps& ops = sample::vocab_ops(this_machine());
  Truth truth;
  for (size_t t = 0; t < ids.size(); ++t) {
    const auto x = std::span(p).subspan(t * kVocab, kVocab), y = std::span(q).subspan(t * kVocab, kVocab);
    const double zx = sample::log_sum_exp(x, ops), zy = sample::log_sum_exp(y, ops);
    double sum = 0;
    for (size_t v = 0; v < kVocab; ++v)
      sum += std::exp(double{x[v]} - zx) * ((double{x[v]} - zx) - (double{y[v]} - zy));
    truth.mean_kl += sum / static_cast<double>(ids.size());
    truth.n_same += argmax(x) == argmax(y);
  }
  return truth;
}

// What the f16 cache of `precise` costs, and the 15-bit activations of `integer` beside it: the mean
// Kullback-Leibler divergence from `float32`. Both get the bound that the f16 cache alone has; one near-tie of 256
// may fall the other way.
TEST_F(SmolLm2, IntegerIsAsTrueAsPrecise) {
  const auto ids = golden<int32_t>("text.ids");
  const auto exact = model(Numerics::float32);
  for (const Numerics numerics : {Numerics::precise, Numerics::integer}) {
    const Truth truth = truth_of(*exact, *model(numerics), std::span(ids).first(256));
    std::printf("%s: mean KL(float32, it) over 256 positions %.2e, %d likeliest tokens equal\n",
                numerics == Numerics::precise ? "precise" : "integer", truth.mean_kl, truth.n_same);
    EXPECT_LE(truth.mean_kl, 1e-5);
    EXPECT_GE(truth.n_same, 255);
  }
}

// The real weights, too: one step, pieces and single tokens give the same bits and the same text.
TEST_F(SmolLm2, DecodingEqualsOneShot) {
  for (const Numerics numerics : {Numerics::precise, Numerics::integer}) {
    const auto smol = model(numerics);
    const auto ids = golden<int32_t>("prompt.0.ids");
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 4}) {
      LlamaRunner decode(*smol, 1, 256, threads, 6), one_shot(*smol, 1, 256, threads == 1 ? 2 : 1, 7);
      std::vector<float> decoded;
      const std::vector<int32_t> text = decode.greedy(ids, threads <= 2 ? 24 : 4, &decoded);
      if (threads == 1) first = decoded;
      EXPECT_EQ(std::memcmp(decoded.data(), first.data(), decoded.size() * 4), 0) << threads << " threads";
      if (threads > 1) continue;
      std::vector<int32_t> all = ids;
      all.insert(all.end(), text.begin(), text.end() - 1);
      const Piece piece{0, 0, all};
      const std::vector<float> logits = one_shot.run(std::span(&piece, 1));
      ASSERT_EQ(decoded.size(), 24u * kVocab);
      EXPECT_EQ(std::memcmp(decoded.data(), logits.data() + (ids.size() - 1) * kVocab, decoded.size() * 4), 0);
    }
  }
}

}  // namespace
}  // namespace gannet::llama
