#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace gannet {
namespace {

// The line with every digit of its leading time of day written as 0. (No std::regex: its header does not compile without
// warnings under g++ 12's sanitizers.)
std::string with_time_zeroed(std::string line) {
  for (char& c : line) {
    if (c == ' ') break;
    if (c >= '0' && c <= '9') c = '0';
  }
  return line;
}

class Log : public testing::Test {
 protected:
  void TearDown() override { log::set_level(log::Level::info); }
};

TEST_F(Log, LinesHaveTimeLevelAndMessage) {
  testing::internal::CaptureStderr();
  log::info("{} of {}", 3, "four");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(with_time_zeroed(line), "00:00:00.000 info 3 of four\n") << line;
}

TEST_F(Log, LevelsBelowTheThresholdAreSilent) {
  using log::Level;
  const Level levels[] = {Level::debug, Level::info, Level::warn, Level::error, Level::off};
  for (size_t i = 0; i < std::size(levels); ++i) {
    log::set_level(levels[i]);
    testing::internal::CaptureStderr();
    log::debug("message");
    log::info("message");
    log::warn("message");
    log::error("message");
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<int64_t>(4 - i)) << text;
    for (size_t k = 0; k < 4; ++k) EXPECT_EQ(log::enabled(levels[k]), k >= i);
  }
}

TEST_F(Log, LinesOfThreadsDoNotMix) {
  constexpr int kThreads = 4, kLines = 200;
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < kLines; ++i) log::warn("{}", std::string(80, static_cast<char>('a' + t)));
    });
  for (std::thread& thread : threads) thread.join();
  std::istringstream text(testing::internal::GetCapturedStderr());
  int lines[kThreads] = {};
  for (std::string line; std::getline(text, line);) {
    const char letter = line.empty() ? '?' : line.back();
    ASSERT_TRUE(letter >= 'a' && letter < 'a' + kThreads) << line;
    ASSERT_EQ(with_time_zeroed(line), "00:00:00.000 warning " + std::string(80, letter));
    ++lines[letter - 'a'];
  }
  for (const int n : lines) EXPECT_EQ(n, kLines);
}

}  // namespace
}  // namespace gannet
