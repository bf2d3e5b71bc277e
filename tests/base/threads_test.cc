#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace gannet {
namespace {

TEST(ThreadPool, CallsEveryThreadOnce) {
  for (const int n : {1, 2, 3, 7}) {
    ThreadPool pool(n, false);
    ASSERT_EQ(pool.size(), n);
    std::vector<std::atomic<int>> calls(static_cast<size_t>(n));
    for (int round = 0; round < 200; ++round) pool.run([&](int i) { calls[static_cast<size_t>(i)].fetch_add(1); });
    for (const auto& c : calls) EXPECT_EQ(c.load(), 200);
  }
  EXPECT_GE(ThreadPool(0).size(), 1);
}

TEST(ThreadPool, ChunksCoverTheRangeOnce) {
  ThreadPool pool(4, false);
  for (const int64_t n : {0, 1, 2, 5, 64, 1000})
    for (const int64_t grain : {1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
      pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        ASSERT_LT(begin, end);
        ASSERT_LE(end, n);
        for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
      });
      for (const auto& s : seen) ASSERT_EQ(s.load(), 1) << n << " " << grain;
    }
}

// What one job writes, the caller and the next job see: plain memory, so that tsan can object.
TEST(ThreadPool, JobsAreOrdered) {
  ThreadPool pool(3, false);
  std::vector<int64_t> values(3, 0), seen(3, -1);
  for (int round = 0; round < 5000; ++round) {
    // Each thread reads what its neighbour wrote in the job before, and writes where nobody reads in this one.
    pool.run([&](int i) { seen[static_cast<size_t>(i)] = values[static_cast<size_t>((i + 1) % 3)]; });
    for (const int64_t v : seen) ASSERT_EQ(v, round);
    pool.run([&](int i) { values[static_cast<size_t>(i)] = round + 1; });
    for (const int64_t v : values) ASSERT_EQ(v, round + 1);
  }
}

TEST(ThreadPool, WakesAfterParking) {
  ThreadPool pool(2, false);
  std::atomic<int> calls{0};
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));  // longer than workers spin
    pool.run([&](int) { calls.fetch_add(1); });
  }
  EXPECT_EQ(calls.load(), 40);
}

TEST(ThreadPool, StartsAndStopsAtOnce) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(3, i % 2 == 0);
    if (i % 3 == 0) pool.run([](int) {});
  }
}

}  // namespace
}  // namespace gannet
