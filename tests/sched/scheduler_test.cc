// The scheduler under random operations. A toy executor keeps, for every KV block, the tokens whose rows were
// written to it, and samples a token as a hash of all tokens read back through the block table: a wrong block, a
// stale row or a lost token gives another answer than the naive run of the same request alone.
#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace gannet::sched {
namespace {

using kv::BlockId;

constexpr int32_t kBlockTokens = 4;

int32_t toy_sample(std::span<const int32_t> tokens) {
  uint32_t hash = 2166136261u;
  for (const int32_t token : tokens) hash = (hash ^ static_cast<uint32_t>(token)) * 16777619u;
  return static_cast<int32_t>(hash >> 20 & 3u);
}

std::vector<int32_t> toy_answer(std::vector<int32_t> tokens, int32_t n) {
  std::vector<int32_t> answer;
  for (int32_t i = 0; i < n; ++i) {
    answer.push_back(toy_sample(tokens));
    tokens.push_back(answer.back());
  }
  return answer;
}

class ToyExecutor {
 public:
  explicit ToyExecutor(int32_t n_blocks) : rows_(static_cast<size_t>(n_blocks * kBlockTokens), -1) {}

  std::vector<int32_t> run(const StepPlan& step) {
    std::vector<int32_t> sampled;
    for (const Chunk& chunk : step.chunks) {
      EXPECT_EQ(chunk.tokens.size() + chunk.pending, static_cast<size_t>(chunk.n_rows));
      for (int32_t i = 0; i < chunk.n_rows; ++i) {
        const bool pending = i >= static_cast<int32_t>(chunk.tokens.size());
        row(chunk, chunk.first_pos + i) = pending ? last_.at(chunk.request) : chunk.tokens[static_cast<size_t>(i)];
      }
      if (!chunk.samples) continue;
      std::vector<int32_t> seen;
      for (int32_t p = 0; p < chunk.first_pos + chunk.n_rows; ++p) seen.push_back(row(chunk, p));
      sampled.push_back(last_[chunk.request] = toy_sample(seen));
    }
    return sampled;
  }

 private:
  int32_t& row(const Chunk& chunk, int32_t pos) {
    const BlockId block = chunk.blocks.at(static_cast<size_t>(pos / kBlockTokens));
    return rows_.at(static_cast<size_t>(kv::index_of(block) * kBlockTokens + pos % kBlockTokens));
  }
  std::vector<int32_t> rows_;
  std::map<RequestId, int32_t> last_;
};

TEST(Scheduler, RefusesWhatCanNeverRun) {
  kv::BlockPool pool(4);
  kv::PrefixIndex index(pool);
  Scheduler scheduler({.max_context = 64, .block_tokens = kBlockTokens}, pool, index);
  const auto error = [&](std::vector<int32_t> prompt, int32_t max_tokens) {
    const Status status =
        scheduler.submit({.id = RequestId{1}, .prompt = std::move(prompt), .max_tokens = max_tokens}, 0);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(error({}, 1), "the prompt has no tokens");
  EXPECT_EQ(error({1}, 0), "max_tokens is 0, it must be at least 1");
  EXPECT_EQ(error(std::vector<int32_t>(64, 1), 1),
            "the prompt has 64 tokens, the context holds 64 and the answer needs at least one");
  EXPECT_EQ(error(std::vector<int32_t>(10, 1), 8), "17 tokens need 5 KV blocks, the cache has 4");
  EXPECT_EQ(error(std::vector<int32_t>(10, 1), 7), "");
  EXPECT_EQ(error({1}, 1), "request 1 is running already");
}

TEST(Scheduler, PolicyOrdersTheQueue) {
  const auto first_admitted = [](Policy policy) {
    kv::BlockPool pool(64);
    kv::PrefixIndex index(pool);
    Scheduler scheduler({.max_seqs = 1, .max_context = 64, .block_tokens = kBlockTokens, .policy = policy}, pool,
                        index);
    ToyExecutor executor(64);
    const auto submit = [&](int64_t id, int32_t length, const char* tenant, int32_t priority = 0) {
      ASSERT_TRUE(
          scheduler.submit({.id = RequestId{id},
                            .prompt = std::vector<int32_t>(static_cast<size_t>(length), static_cast<int32_t>(id)),
                            .max_tokens = 1,
                            .priority = priority,
                            .tenant = tenant},
                           id));
    };
    submit(1, 12, "a", 1);
    submit(2, 9, "a");
    submit(3, 5, "b");
    const StepPlan warm = scheduler.plan();
    scheduler.complete(warm, executor.run(warm));
    scheduler.finish(RequestId{1});
    return static_cast<int64_t>(scheduler.plan().chunks.at(0).request);
  };
  EXPECT_EQ(first_admitted(Policy::first_come), 2);
  EXPECT_EQ(first_admitted(Policy::shortest_miss), 3);
  EXPECT_EQ(first_admitted(Policy::fair), 3);
}

TEST(Scheduler, OldRequestsOvertakeHigherPriorities) {
  kv::BlockPool pool(64);
  kv::PrefixIndex index(pool);
  Scheduler scheduler({.max_seqs = 1, .max_context = 64, .block_tokens = kBlockTokens, .ageing_us = 100}, pool,
                      index);
  ASSERT_TRUE(scheduler.submit({.id = RequestId{1}, .prompt = {1}, .priority = 0}, 0));
  ASSERT_TRUE(scheduler.submit({.id = RequestId{2}, .prompt = {1}, .priority = 1}, 50));
  ASSERT_TRUE(scheduler.submit({.id = RequestId{3}, .prompt = {1}, .priority = 1}, 250));
  std::vector<int64_t> order;
  ToyExecutor executor(64);
  while (!scheduler.idle()) {
    const StepPlan step = scheduler.plan();
    order.push_back(static_cast<int64_t>(step.chunks.at(0).request));
    scheduler.complete(step, executor.run(step));
    scheduler.finish(step.chunks[0].request);
  }
  EXPECT_EQ(order, (std::vector<int64_t>{2, 1, 3}));
}

struct Case {
  uint32_t seed;
  int32_t n_blocks, max_seqs, max_rows, steps_ahead;
  Policy policy;
};

// Runs random requests to their end, with random aborts, and compares each answer with the naive one.
void run_case(const Case& c, int n_operations) {
  std::mt19937 random(c.seed);
  kv::BlockPool pool(c.n_blocks);
  kv::PrefixIndex index(pool);
  const int32_t max_context = c.n_blocks * kBlockTokens;
  Scheduler scheduler({.max_rows = c.max_rows,
                       .max_seqs = c.max_seqs,
                       .max_context = max_context,
                       .block_tokens = kBlockTokens,
                       .max_steps_ahead = c.steps_ahead,
                       .policy = c.policy,
                       .ageing_us = 50},
                      pool, index);
  ToyExecutor executor(c.n_blocks);
  struct Wanted {
    std::vector<int32_t> prompt;
    int32_t max_tokens;
  };
  std::map<RequestId, Wanted> wanted;
  std::deque<std::pair<StepPlan, std::vector<int32_t>>> in_flight;
  int64_t next_id = 0, finished = 0;
  int stuck = 0;

  const auto retire = [&] {
    const auto [step, sampled] = std::move(in_flight.front());
    in_flight.pop_front();
    for (const RequestId id : scheduler.complete(step, sampled)) {
      const Wanted& want = wanted.at(id);
      const auto& tokens = *scheduler.tokens(id);
      if (static_cast<int32_t>(tokens.size() - want.prompt.size()) < want.max_tokens) continue;
      const std::vector<int32_t> answer(tokens.begin() + static_cast<long>(want.prompt.size()), tokens.end());
      ASSERT_EQ(answer, toy_answer(want.prompt, want.max_tokens)) << "request " << static_cast<int64_t>(id);
      scheduler.finish(id);
      wanted.erase(id);
      ++finished;
    }
  };

  for (int op = 0; op < n_operations || !scheduler.idle(); ++op) {
    const auto action = random() % 8;
    if (op < n_operations && action < 2 && wanted.size() < 12) {
      Wanted want{{}, 1 + static_cast<int32_t>(random() % 9)};
      const auto longest = static_cast<uint32_t>(max_context - want.max_tokens);
      for (uint32_t i = 0, n = 1 + random() % std::min(longest, 24u); i < n; ++i)
        want.prompt.push_back(static_cast<int32_t>(random() % 2));
      const RequestId id{next_id++};
      const Status status = scheduler.submit({.id = id,
                                              .prompt = want.prompt,
                                              .max_tokens = want.max_tokens,
                                              .priority = static_cast<int32_t>(random() % 2),
                                              .tenant = std::string(1, static_cast<char>('a' + random() % 2))},
                                             op);
      ASSERT_TRUE(status.has_value()) << status.error().message;
      wanted.emplace(id, want);
    } else if (action == 2 && !wanted.empty() && random() % 4 == 0) {  // abort anybody, whatever it is doing
      auto it = std::next(wanted.begin(), static_cast<long>(random() % wanted.size()));
      scheduler.finish(it->first);
      scheduler.finish(it->first);
      wanted.erase(it);
    } else if (action == 3 && !in_flight.empty()) {
      retire();
    } else {
      StepPlan step = scheduler.plan();
      if (step.chunks.empty()) {
        if (in_flight.empty())
          ASSERT_LT(++stuck, 3) << "nothing is in flight and nothing can be planned";
        else
          retire();
      } else {
        stuck = 0;
        ASSERT_LE(step.n_rows(), c.max_rows);
        auto sampled = executor.run(step);
        in_flight.emplace_back(std::move(step), std::move(sampled));
      }
    }
    if (testing::Test::HasFatalFailure()) return;
    scheduler.check_invariants();
    if (scheduler.idle()) stuck = 0;
  }
  ASSERT_TRUE(wanted.empty());
  ASSERT_EQ(pool.n_held(), 0) << "a block leaked";
  ASSERT_GT(finished, 0);
}

TEST(Scheduler, RandomOperationsGiveTheNaiveAnswers) {
  uint32_t seed = 1;
  for (const int32_t n_blocks : {6, 9, 20})
    for (const int32_t max_seqs : {1, 3, 8})
      for (const int32_t max_rows : {1, 5, 64})
        for (const int32_t ahead : {0, 1, 2})
          for (const Policy policy : {Policy::first_come, Policy::shortest_miss, Policy::fair}) {
            SCOPED_TRACE(testing::Message() << "blocks " << n_blocks << " seqs " << max_seqs << " rows " << max_rows
                                            << " ahead " << ahead);
            run_case({seed++, n_blocks, max_seqs, max_rows, ahead, policy}, 400);
            if (HasFatalFailure()) return;
          }
}

}  // namespace
}  // namespace gannet::sched
