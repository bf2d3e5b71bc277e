// Against the stored answers: float mode end to end; the other modes layer by layer from stored streams.
#include "golden.h"

#include <cmath>

namespace gannet::deepseek_v41::test {
namespace {

const char* const kConfigs[] = {"roles", "plain", "mixed", "wide"};
const char* const kPrompts[] = {"one", "forty", "ninety_seven", "image", "long"};
constexpr float kLogitBound = 5e-5f;  // of logits with a deviation of about 1

class FloatGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(FloatGolden, LogitsOfEveryPrompt) {
  const Golden golden = Golden::open(GetParam());
  const auto model = golden.model(Numerics::float32, /*trim=*/false);
  const auto V = static_cast<size_t>(golden.config.vocab);
  for (const std::string name : kPrompts) {
    const Text text = golden.prompt(name);
    Runner run(*model, 1, text.size(), text.size(), 1, 7);
    const Piece piece{0, &text, 0, text.size(), text.size(), text.size()};
    const std::vector<float> logits = run.run(std::span(&piece, 1));
    const std::vector<float> want = golden.answers.floats(name + ".logits");
    const std::vector<int32_t> rows = golden.answers.ints(name + ".logit_rows");
    ASSERT_EQ(want.size(), rows.size() * V);
    float worst = 0;
    for (size_t r = 0; r < rows.size(); ++r)
      for (size_t v = 0; v < V; ++v) {
        const float gap = std::fabs(logits[static_cast<size_t>(rows[r]) * V + v] - want[r * V + v]);
        worst = gap <= worst ? worst : gap;  // NaN sticks
      }
    EXPECT_LE(worst, kLogitBound) << GetParam() << " " << name;
    RecordProperty(name, std::to_string(worst));
    std::printf("  %s %s: max |dlogit| %.2g over %zu rows\n", GetParam(), name.c_str(), static_cast<double>(worst),
                rows.size());
  }
}

// The whole model on scalar references and on every instruction set of this machine, each against the stored
// answer.
TEST_P(FloatGolden, LogitsOnEveryInstructionSet) {
  const Golden golden = Golden::open(GetParam());
  const auto V = static_cast<size_t>(golden.config.vocab);
  const std::vector<float> want = golden.answers.floats("forty.logits");
  const std::vector<int32_t> rows = golden.answers.ints("forty.logit_rows");
  const Text text = golden.prompt("forty");
  const Piece piece{0, &text, 0, text.size(), text.size(), text.size()};
  std::vector<std::vector<float>> answers;
  for (const std::string isa : {"scalar", "avx2", "avx512", ""}) {
    const auto model = golden.model(Numerics::float32, /*trim=*/false, isa);
    Runner run(*model, 1, text.size(), text.size(), 1, 7);
    answers.push_back(run.run(std::span(&piece, 1)));
    for (size_t r = 0; r < rows.size(); ++r)
      for (size_t v = 0; v < V; ++v)  // <= is false for NaN
        ASSERT_TRUE(std::fabs(answers.back()[static_cast<size_t>(rows[r]) * V + v] - want[r * V + v]) <=
                    kLogitBound)
            << isa << " row " << rows[r] << " id " << v;
  }
  EXPECT_EQ(answers[1], answers[2]) << "wider instruction sets change no bit (docs/contracts.md, 10)";
  EXPECT_EQ(answers[1], answers[3]);
}

TEST_P(FloatGolden, GreedyContinuation) {
  const Golden golden = Golden::open(GetParam());
  const auto model = golden.model(Numerics::float32);  // trimmed, as in service
  const int32_t V = golden.config.vocab;
  for (const std::string name : kPrompts) {
    Text text = golden.prompt(name);
    const std::vector<int32_t> want = golden.answers.ints(name + ".greedy");
    const int32_t prompt = text.size(), max = prompt + static_cast<int32_t>(want.size());
    Runner run(*model, 1, max, prompt, 1, 11);
    std::vector<int32_t> got;
    for (int32_t done = 0; done < max && got.size() < want.size(); done = text.size() - 1) {
      const Piece piece{0, &text, done, text.size() - done, prompt, 1};
      const std::vector<float> logits = run.run(std::span(&piece, 1));
      got.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.begin() + V) - logits.begin()));
      text.tokens.push_back(got.back());
      if (!text.is_image.empty()) text.is_image.push_back(0);
    }
    ASSERT_EQ(got, want) << GetParam() << " " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, FloatGolden, ::testing::ValuesIn(kConfigs),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace gannet::deepseek_v41::test
