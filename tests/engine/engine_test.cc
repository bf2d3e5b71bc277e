#include "engine/engine.h"

#include <gtest/gtest.h>

#include <random>

#include "support/toy_model.h"

namespace gannet::engine {
namespace {

using test::toy_greedy;
using test::ToyModel;

struct Outcome {
  std::map<RequestId, std::vector<int32_t>> text;
  std::map<RequestId, FinishReason> finished;
};

Outcome drain(Engine& engine) {
  Outcome run;
  while (engine.step([&](const TokenEvent& event) {
    EXPECT_FALSE(run.finished.contains(event.id)) << "an event after the last one";
    run.text[event.id].push_back(event.sampled.token);
    if (event.finished) run.finished[event.id] = *event.finished;
  })) {
  }
  return run;
}

std::unique_ptr<Engine> make(ToyModel& model, EngineOptions options) {
  if (options.max_context == 0) options.max_context = 64;
  options.n_threads = 1;
  auto engine = Engine::create(model, this_machine(), options, "toy");
  EXPECT_TRUE(engine.has_value());
  return std::move(*engine);
}

GenerateRequest greedy(std::vector<int32_t> prompt, int32_t max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

TEST(Engine, TextIsTheModelsTextInAnyCrowd) {
  std::mt19937 random(3);
  for (const EngineOptions& options : {EngineOptions{.max_seqs = 1}, EngineOptions{.max_seqs = 5, .max_rows = 3},
                                       EngineOptions{.max_seqs = 8, .kv_bytes = 16 * 20}}) {
    ToyModel model;
    const auto engine = make(model, options);
    std::map<RequestId, std::pair<std::vector<int32_t>, int32_t>> asked;
    for (int i = 0; i < 40; ++i) {
      std::vector<int32_t> prompt;
      for (uint32_t n = 1 + random() % 20; n > 0; --n) prompt.push_back(static_cast<int32_t>(random() % 2));
      const auto max_tokens = static_cast<int32_t>(1 + random() % 12);
      const auto id = engine->submit(greedy(prompt, max_tokens));
      ASSERT_TRUE(id.has_value());
      asked[*id] = {prompt, max_tokens};
    }
    const Outcome run = drain(*engine);
    for (const auto& [id, want] : asked) {
      EXPECT_EQ(run.text.at(id), toy_greedy(want.first, want.second));
      EXPECT_EQ(run.finished.at(id), FinishReason::length);
    }
    EXPECT_EQ(engine->counts().running + engine->counts().waiting, 0);
  }
}

TEST(Engine, ARepeatedPromptRunsOnlyItsLastBlock) {
  ToyModel model;
  const auto engine = make(model, {});
  const std::vector<int32_t> prompt{1, 2, 3, 4, 5, 6, 7, 8, 9};
  ASSERT_TRUE(engine->submit(greedy(prompt, 1)).has_value());
  drain(*engine);
  EXPECT_EQ(model.rows_run, 9);
  ASSERT_TRUE(engine->submit(greedy(prompt, 1)).has_value());
  const Outcome run = drain(*engine);
  EXPECT_EQ(model.rows_run, 9 + 1);
  EXPECT_EQ(run.text.begin()->second, toy_greedy(prompt, 1));
}

TEST(Engine, StopTokensEndTheText) {
  ToyModel model;
  const auto engine = make(model, {});
  const auto all = toy_greedy({1}, 10);
  GenerateRequest request = greedy({1}, 10);
  request.sampling.stop_token_ids = {all[3]};
  ASSERT_TRUE(engine->submit(request).has_value());
  const Outcome run = drain(*engine);
  const auto& text = run.text.begin()->second;
  EXPECT_EQ(text.back(), all[3]);
  EXPECT_EQ(text.size(), static_cast<size_t>(std::find(all.begin(), all.end(), all[3]) - all.begin()) + 1);
  EXPECT_EQ(run.finished.begin()->second, FinishReason::stop);
}

TEST(Engine, SeededTextDoesNotDependOnTheCrowd) {
  const auto text_of = [](int32_t max_seqs, int crowd) {
    ToyModel model;
    const auto engine = make(model, {.max_seqs = max_seqs, .max_rows = 7});
    GenerateRequest request = greedy({4, 5, 6}, 20);
    request.sampling.temperature = 1;
    request.sampling.seed = 42;
    const auto id = engine->submit(request);
    for (int i = 0; i < crowd; ++i) EXPECT_TRUE(engine->submit(greedy({i % 3, 1, 2}, 1 + i % 9)).has_value());
    return drain(*engine).text.at(*id);
  };
  const auto alone = text_of(1, 0);
  EXPECT_EQ(alone, text_of(4, 11));
  EXPECT_EQ(alone, text_of(16, 30));
}

TEST(Engine, RefusesWhatCannotRunAndLosesNothing) {
  ToyModel model;
  const auto engine = make(model, {.max_context = 16});
  const auto message = [&](GenerateRequest request) {
    const auto id = engine->submit(std::move(request));
    return id ? std::string("accepted") : id.error().message;
  };
  EXPECT_EQ(message(greedy({11}, 1)), "the prompt has token id 11, the vocabulary ends at 10");
  EXPECT_EQ(message(greedy({-1}, 1)), "the prompt has token id -1, the vocabulary ends at 10");
  EXPECT_EQ(message(greedy(std::vector<int32_t>(16, 1), 1)),
            "the prompt has 16 tokens, the context holds 16 and the answer needs at least one");
  EXPECT_EQ(message(greedy(std::vector<int32_t>(15, 1), 100)), "accepted");
  EXPECT_EQ(drain(*engine).text.begin()->second.size(), 1u) << "the context ends the text";
}

}  // namespace
}  // namespace gannet::engine
