#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

namespace gannet {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override { log::set_level(log::Level::info); }
};

TEST_F(Log, LinesHaveTimeLevelAndMessage) {
  testing::internal::CaptureStderr();
  log::info("{} of {}", 3, "four");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::regex_match(line, std::regex(R"(\d\d:\d\d:\d\d\.\d\d\d info 3 of four\n)"))) << line;
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
  const std::regex whole(R"([\d:.]+ warning (a{80}|b{80}|c{80}|d{80}))");
  int n = 0;
  for (std::string line; std::getline(text, line); ++n) ASSERT_TRUE(std::regex_match(line, whole)) << line;
  EXPECT_EQ(n, kThreads * kLines);
}

}  // namespace
}  // namespace gannet
