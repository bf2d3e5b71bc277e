// The engine over a scripted runner: who gets which reply, and when, with a runner that is slow, fails or waits.
#include "engine/scripted_runner.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <random>

#include "engine/service.h"

namespace gannet::engine {
namespace {

// The answer to a prompt: depends on all of it and on the index.
int32_t scripted_token(const std::vector<int32_t>& prompt, int32_t n) {
  uint32_t hash = 2166136261u;
  for (const int32_t token : prompt) hash = (hash ^ static_cast<uint32_t>(token)) * 16777619u;
  return static_cast<int32_t>((hash ^ static_cast<uint32_t>(n) * 2654435761u) >> 8 & 63u);
}
std::vector<int32_t> scripted_text(const std::vector<int32_t>& prompt, int32_t n) {
  std::vector<int32_t> text;
  for (int32_t i = 0; i < n; ++i) text.push_back(scripted_token(prompt, i));
  return text;
}

Script plain_script() {
  return {.token = [](const std::vector<int32_t>& prompt, int32_t n) { return ScriptedToken{scripted_token(prompt, n), {}}; }};
}

std::unique_ptr<Engine> make(Script script, ScriptedOptions options = {}, bool asynchronous = true) {
  return Engine::create(std::make_unique<ScriptedRunner>(options, std::move(script)), {.asynchronous = asynchronous},
                        "script");
}

GenerateRequest greedy(std::vector<int32_t> prompt, int32_t max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

struct Reply {
  std::vector<int32_t> text;
  int ends = 0;
  std::optional<FinishReason> finished;
  std::string error;
};
using Replies = std::map<RequestId, Reply>;

void take(Replies& replies, const TokenEvent& event) {
  Reply& reply = replies[event.id];
  EXPECT_EQ(reply.ends, 0) << "an event after the last one";
  if (event.finished != FinishReason::failed) reply.text.push_back(event.sampled.token);
  if (!event.finished) return;
  ++reply.ends;
  reply.finished = event.finished;
  reply.error = event.error;
}

// Requests arrive, are aborted and end at random, in a cache too small for them all; every answer is the script's, every
// request has one end, and no block is left. Preempted requests go on where they were.
void run_random(uint32_t seed, bool asynchronous) {
  std::mt19937 random(seed);
  Script script = plain_script();
  script.token = [](const std::vector<int32_t>& prompt, int32_t n) {
    if (prompt[0] == 7 && n == 3) return ScriptedToken{0, "the script fails here"};
    return ScriptedToken{scripted_token(prompt, n), {}};
  };
  const ScriptedOptions options{.vocab = 64, .block_tokens = 4, .n_blocks = 14, .n_slots = 4, .max_rows = 9,
                                .max_context = 48};
  const auto engine = make(script, options, asynchronous);
  struct Asked {
    std::vector<int32_t> prompt;
    int32_t max_tokens = 0;
    bool aborted = false;
  };
  std::map<RequestId, Asked> asked;
  Replies replies;
  for (int op = 0; op < 600; ++op) {
    const auto action = random() % 4;
    if (action == 0 && asked.size() < 150) {
      std::vector<int32_t> prompt;
      for (uint32_t i = 0, n = 1 + random() % 16; i < n; ++i) prompt.push_back(static_cast<int32_t>(random() % 8));
      const auto max_tokens = static_cast<int32_t>(1 + random() % 20);
      const auto id = engine->submit(greedy(prompt, max_tokens));
      ASSERT_TRUE(id.has_value()) << id.error().message;
      asked[*id] = {prompt, max_tokens};
    } else if (action == 1 && !asked.empty() && random() % 4 == 0) {
      const auto it = std::next(asked.begin(), static_cast<long>(random() % asked.size()));
      engine->abort(it->first);
      it->second.aborted = true;
    } else {
      engine->step([&](const TokenEvent& event) {
        EXPECT_FALSE(asked.at(event.id).aborted) << "an event after abort()";
        take(replies, event);
      });
    }
  }
  while (engine->step([&](const TokenEvent& event) { take(replies, event); })) {
  }
  EXPECT_TRUE(engine->idle());
  EXPECT_EQ(engine->pool().n_held(), 0);
  for (const auto& [id, want] : asked) {
    const Reply& reply = replies[id];
    const bool fails = want.prompt[0] == 7 && want.max_tokens > 3;
    const std::vector<int32_t> text = scripted_text(want.prompt, fails ? 3 : want.max_tokens);
    ASSERT_LE(reply.text.size(), text.size());
    EXPECT_TRUE(std::equal(reply.text.begin(), reply.text.end(), text.begin())) << "another text than the script's";
    if (want.aborted && reply.ends == 0) continue;
    EXPECT_EQ(reply.ends, 1);
    EXPECT_EQ(reply.text, text);
    EXPECT_EQ(reply.finished, fails ? FinishReason::failed : FinishReason::length);
    EXPECT_EQ(reply.error, fails ? "the script fails here" : "");
  }
}

TEST(Scripted, EveryRequestEndsOnceInASmallCache) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    run_random(seed, seed % 2 == 0);
    if (HasFatalFailure()) return;
  }
}

TEST(Scripted, TheCacheRunsOutAndNobodyFails) {
  const ScriptedOptions options{.block_tokens = 4, .n_blocks = 8, .n_slots = 6, .max_context = 32};
  const auto engine = make(plain_script(), options);
  Replies replies;
  std::map<RequestId, std::vector<int32_t>> prompts;
  for (int32_t i = 0; i < 12; ++i) {
    const auto id = engine->submit(greedy({i, i, i}, 28));
    ASSERT_TRUE(id.has_value());
    prompts[*id] = {i, i, i};
  }
  while (engine->step([&](const TokenEvent& event) { take(replies, event); })) {
  }
  for (const auto& [id, prompt] : prompts) EXPECT_EQ(replies[id].text, scripted_text(prompt, 28));
  EXPECT_GT(engine->counts().preemptions, 0) << "the case is too easy";
}

// A step ends only once the next one has been handed over: were that planned afterwards, it would wait in vain.
TEST(Scripted, TheNextStepIsPlannedWhileOneRuns) {
  constexpr int32_t kTokens = 20;
  const Engine* running = nullptr;
  int n_alone = 0;
  Script script = plain_script();
  script.before_step = [&](const StepWork& work) {
    if (work.step + 1 == kTokens) return std::string();  // nothing comes behind the last one
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (running->launched_steps() <= work.step + 1 && n_alone == 0) {
      if (std::chrono::steady_clock::now() > patience) ++n_alone;
      std::this_thread::yield();
    }
    return std::string();
  };
  const auto engine = make(script);
  running = engine.get();
  const auto id = engine->submit(greedy({1, 2, 3}, kTokens));
  ASSERT_TRUE(id.has_value());
  Replies replies;
  while (engine->step([&](const TokenEvent& event) { take(replies, event); })) {
  }
  EXPECT_EQ(n_alone, 0) << "a step ran and nothing had been planned behind it";
  EXPECT_EQ(replies[*id].text, scripted_text({1, 2, 3}, kTokens));
}

TEST(Scripted, AFailedStepEndsItsRequestsAndNoOther) {
  Script script = plain_script();
  script.before_step = [](const StepWork& work) { return work.step == 3 ? std::string("the device is gone") : std::string(); };
  for (const bool asynchronous : {false, true}) {
    const auto engine = make(script, {.n_slots = 2}, asynchronous);
    Replies replies;
    std::vector<RequestId> ids;
    for (int32_t i = 0; i < 4; ++i) ids.push_back(*engine->submit(greedy({i}, 8)));
    while (engine->step([&](const TokenEvent& event) { take(replies, event); })) {
    }
    for (int32_t i = 0; i < 4; ++i) {
      const Reply& reply = replies[ids[static_cast<size_t>(i)]];
      EXPECT_EQ(reply.ends, 1);
      EXPECT_EQ(reply.finished, i < 2 ? FinishReason::failed : FinishReason::length) << i;
      if (i < 2) EXPECT_EQ(reply.error, "the device is gone");
      else EXPECT_EQ(reply.text, scripted_text({i}, 8));
    }
    EXPECT_EQ(engine->pool().n_held(), 0);
  }
}

TEST(Scripted, AbortTakesEffectBeforeTheNextToken) {
  const auto engine = make(plain_script());
  const RequestId stays = *engine->submit(greedy({1}, 6)), goes = *engine->submit(greedy({2}, 1000));
  Replies replies;
  bool aborted = false;
  const auto on_token = [&](const TokenEvent& event) {
    EXPECT_FALSE(aborted && event.id == goes);
    take(replies, event);
    if (event.id == stays && replies[stays].text.size() == 3) {
      engine->abort(goes);
      aborted = true;
    }
  };
  while (engine->step(on_token)) {
  }
  EXPECT_EQ(replies[stays].text, scripted_text({1}, 6));
  EXPECT_LE(replies[goes].text.size(), 3u);
  EXPECT_EQ(engine->pool().n_held(), 0);
}

TEST(Scripted, TimingsAddUp) {
  Script script = plain_script();
  script.before_step = [](const StepWork&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return std::string();
  };
  const auto engine = make(script, {.n_slots = 1});
  const RequestId first = *engine->submit(greedy({1}, 4)), second = *engine->submit(greedy({2}, 3));
  std::map<RequestId, RequestTimings> last;
  while (engine->step([&](const TokenEvent& event) { last[event.id] = event.timings; })) {
  }
  EXPECT_GE(last[first].prefill_us, 2000);
  EXPECT_GE(last[first].decode_us, 3 * 2000);
  EXPECT_GE(last[second].queue_us, 4 * 2000) << "it waited for the whole first answer";
  EXPECT_GE(last[second].decode_us, 2 * 2000);
}

TEST(Scripted, DrainLetsAnswersEndAndCutsOffTheRest) {
  Script script = plain_script();
  script.before_step = [](const StepWork&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::string();
  };
  for (const bool patient : {true, false}) {
    Service service(make(script));
    std::atomic<int> whole{0}, cut{0};
    std::promise<void> started;
    std::atomic<bool> first{true};
    for (int32_t i = 0; i < 3; ++i)
      service.submit(greedy({i}, patient ? 10 : 4000), [&](const ServiceEvent& event) {
        if (first.exchange(false)) started.set_value();
        whole += event.token.finished == FinishReason::length;
        cut += event.aborted;
      });
    started.get_future().wait();
    EXPECT_EQ(service.drain(std::chrono::milliseconds(patient ? 20000 : 10)), patient ? 0 : 3);
    EXPECT_EQ(whole, patient ? 3 : 0);
    EXPECT_EQ(cut, patient ? 0 : 3);
    bool refused = false;
    service.submit(greedy({1}, 1), [&](const ServiceEvent& event) { refused = event.aborted; });
    EXPECT_TRUE(refused) << "a drained service takes nothing";
    EXPECT_EQ(service.counts().kv_blocks_held, 0);
  }
}

}  // namespace
}  // namespace gannet::engine
