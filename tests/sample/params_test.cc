#include "sample/params.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "sample/processors.h"

namespace gannet::sample {
namespace {

TEST(Params, DefaultsAreValid) { EXPECT_TRUE(validate({}, 100).has_value()); }

TEST(Params, EveryFieldRefusesWhatIsNoNumberInRange) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  struct Field {
    const char* name;
    double SamplingParams::*member;
    std::vector<double> bad, good;
  };
  const Field fields[] = {
      {"temperature", &SamplingParams::temperature, {-0.1, 2.01, kNan, kInf, -kInf}, {0, -0.0, 1e-38, 2}},
      {"top_p", &SamplingParams::top_p, {0, -0.0, 1.01, kNan, kInf}, {1e-9, 1}},
      {"min_p", &SamplingParams::min_p, {-0.1, 1.1, kNan, -kInf}, {0, 1}},
      {"presence_penalty", &SamplingParams::presence_penalty, {-2.1, 2.1, kNan, kInf}, {-2, 2}},
      {"frequency_penalty", &SamplingParams::frequency_penalty, {-2.1, 2.1, kNan, kInf}, {-2, 2}},
      {"repetition_penalty", &SamplingParams::repetition_penalty, {0, -1, 1e-9, 101, kNan, kInf}, {0.5, 2}},
  };
  for (const Field& field : fields) {
    for (const double value : field.bad) {
      SamplingParams params;
      params.*field.member = value;
      const Status status = validate(params, 100);
      ASSERT_FALSE(status.has_value()) << field.name << " " << value;
      EXPECT_EQ(status.error().code, Errc::bad_request);
      EXPECT_NE(status.error().message.find(field.name), std::string::npos) << status.error().message;
    }
    for (const double value : field.good) {
      SamplingParams params;
      params.*field.member = value;
      EXPECT_TRUE(validate(params, 100).has_value()) << field.name << " " << value;
    }
  }
}

TEST(Params, MessageNamesTheValue) {
  SamplingParams params;
  params.temperature = 2.5;
  EXPECT_EQ(validate(params, 100).error().message, "temperature must be between 0 and 2, got 2.5");
}

TEST(Params, TokenIdsMustBeOfTheVocabulary) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max(), kMin = std::numeric_limits<int32_t>::min();
  for (const int32_t id : {-1, 100, kMax, kMin}) {
    for (const auto& set : std::initializer_list<std::function<void(SamplingParams&)>>{
             [id](SamplingParams& p) {
               p.logit_bias = {{id, 1.0f}};
             },
             [id](SamplingParams& p) {
               p.stop_token_ids = {5, id};
             },
             [id](SamplingParams& p) { p.allowed_token_ids = {id}; }}) {
      SamplingParams params;
      set(params);
      EXPECT_FALSE(validate(params, 100).has_value()) << id;
    }
  }
  SamplingParams params;
  params.logit_bias = {{5, std::numeric_limits<float>::quiet_NaN()}};
  EXPECT_FALSE(validate(params, 100).has_value());
  params.logit_bias = {{5, 100.5f}};
  EXPECT_FALSE(validate(params, 100).has_value());
  params.logit_bias.assign(kMaxLogitBiases + 1, {1, 0.0f});
  EXPECT_FALSE(validate(params, 100).has_value());
  params = {};
  params.top_k = -2;
  EXPECT_FALSE(validate(params, 100).has_value());
  params = {};
  params.top_logprobs = 21;
  EXPECT_FALSE(validate(params, 100).has_value());
  params = {};
  params.min_tokens = -1;
  EXPECT_FALSE(validate(params, 100).has_value());
}

TEST(Processors, Penalties) {
  TokenCounts counts;
  counts.add_prompt(std::vector<int32_t>{0, 1, 1});
  counts.add(1);
  counts.add(2);
  counts.add(2);
  SamplingParams params;
  params.repetition_penalty = 2;
  params.frequency_penalty = 0.5;
  params.presence_penalty = 0.25;
  std::vector<float> logits{3, -3, 4, 5};
  apply_processors(logits, params, counts, 0, {});
  // Token 0 is of the prompt: repetition alone. 1: both. 2: generated twice.
  EXPECT_EQ(logits, (std::vector<float>{1.5f, -6 - 0.5f - 0.25f, 2 - 1.0f - 0.25f, 5}));
}

TEST(Processors, OrderIsMaskStopBiasPenalty) {
  TokenCounts counts;
  counts.add(0);
  SamplingParams params;
  params.logit_bias = {{0, 5.0f}, {2, 100.0f}};
  params.repetition_penalty = 2;
  params.stop_token_ids = {2};
  params.min_tokens = 3;
  const float masked = -std::numeric_limits<float>::infinity();
  std::vector<float> logits{-1, 1, 1};
  apply_processors(logits, params, counts, 2, {});
  EXPECT_EQ(logits, (std::vector<float>{2, 1, masked}));  // biased to 4, then halved; a masked stop stays masked
  logits = {-1, 1, 1};
  apply_processors(logits, params, counts, 3, {});  // min_tokens reached
  EXPECT_EQ(logits, (std::vector<float>{2, 1, 101}));
  params = {};
  params.allowed_token_ids = {1, 2};
  const std::vector<uint32_t> mask{0b011};
  logits = {3, 3, 3};
  apply_processors(logits, params, counts, 0, mask);
  EXPECT_EQ(logits, (std::vector<float>{masked, 3, masked}));
}

TEST(Processors, CountsRollBack) {
  TokenCounts counts;
  counts.add_prompt(std::vector<int32_t>{4, 4, 9});
  counts.add(9);
  const TokenCounts before = counts;
  for (const int32_t draft : {9, 4, 100, 100, 7}) counts.add(draft);
  EXPECT_FALSE(counts == before);
  for (const int32_t draft : {7, 100, 100, 4, 9}) counts.remove(draft);
  EXPECT_TRUE(counts == before);
}

}  // namespace
}  // namespace gannet::sample
