// Planning a step ahead changes no bit of any answer: real models, with requests that come and go.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <map>
#include <random>

#include "engine/engine.h"
#include "engine/loaded_model.h"

namespace gannet::engine {
namespace {

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> logprob_bits;
  bool operator==(const Answer&) const = default;
};

GenerateRequest random_request(std::mt19937& random, int32_t vocab, int32_t max_prompt, int32_t max_tokens) {
  GenerateRequest request;
  for (uint32_t n = 1 + random() % static_cast<uint32_t>(max_prompt); n > 0; --n)
    request.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(vocab)));
  request.max_tokens = 1 + static_cast<int32_t>(random() % static_cast<uint32_t>(max_tokens));
  request.sampling.temperature = random() % 2 == 0 ? 0.0 : 1.0;
  request.sampling.seed = random();
  request.sampling.repetition_penalty = random() % 3 == 0 ? 1.3 : 1.0;
  request.sampling.top_logprobs = 0;
  return request;
}

// All answers, submitted a few at a time, so that rows of prompts and of answers mix differently in each step.
std::vector<Answer> run(LoadedModel& model, const std::vector<GenerateRequest>& requests, EngineOptions options) {
  options.max_context = 128;
  options.n_threads = 1;
  const auto engine = Engine::create(*model.model, this_machine(), options, model.weights_id);
  EXPECT_TRUE(engine) << engine.error().message;
  std::map<RequestId, size_t> index;
  std::vector<Answer> answers(requests.size());
  size_t submitted = 0, ended = 0;
  while (ended < requests.size()) {
    for (int i = 0; i < 2 && submitted < requests.size(); ++i) {
      const auto id = (*engine)->submit(requests[submitted]);
      EXPECT_TRUE(id) << id.error().message;
      index[*id] = submitted++;
    }
    (*engine)->step([&](const TokenEvent& event) {
      Answer& answer = answers[index.at(event.id)];
      answer.tokens.push_back(event.sampled.token);
      answer.logprob_bits.push_back(std::bit_cast<uint32_t>(event.sampled.logprob));
      ended += event.finished.has_value();
    });
  }
  return answers;
}

void expect_same_answers(const char* path, int n, int32_t max_prompt, int32_t max_tokens) {
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "there is no " << path;
  const auto loaded = LoadedModel::load({.path = path}, this_machine());
  ASSERT_TRUE(loaded) << loaded.error().message;
  std::mt19937 random(11);
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < n; ++i)
    requests.push_back(random_request(random, (*loaded)->model->info().vocab, max_prompt, max_tokens));
  const auto plain = run(**loaded, requests, {.max_seqs = 1, .asynchronous = false});
  size_t n_tokens = 0;
  for (const Answer& answer : plain) n_tokens += answer.tokens.size();
  EXPECT_GT(n_tokens, requests.size());
  for (const int32_t max_seqs : {1, 4}) {
    for (const int32_t max_rows : {7, 64}) {
      for (const bool asynchronous : {false, true}) {
        const EngineOptions options{.max_seqs = max_seqs, .max_rows = max_rows, .asynchronous = asynchronous};
        const auto answers = run(**loaded, requests, options);
        for (size_t i = 0; i < requests.size(); ++i)
          ASSERT_EQ(answers[i], plain[i]) << "request " << i << ", " << max_seqs << " at once, " << max_rows
                                          << " rows, " << (asynchronous ? "asynchronous" : "synchronous");
      }
    }
  }
}

TEST(Asynchronous, TheSmallDeepSeekAnswersTheSameBits) {
  expect_same_answers(GANNET_SOURCE_DIR "/models/gannet-mini", 12, 50, 12);
}

TEST(Asynchronous, SmolLM2AnswersTheSameBits) {
  expect_same_answers(GANNET_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf", 6, 16, 8);
}

}  // namespace
}  // namespace gannet::engine
