#include "base/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <thread>

namespace gannet {
namespace {

using std::chrono::milliseconds;

TEST(Progress, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.0 kB");
  EXPECT_EQ(format_bytes(99'949), "99.9 kB");
  EXPECT_EQ(format_bytes(99'950), "100 kB");
  EXPECT_EQ(format_bytes(999'499), "999 kB");
  EXPECT_EQ(format_bytes(999'500), "1.0 MB");
  EXPECT_EQ(format_bytes(510'286'023'000), "510 GB");
  EXPECT_EQ(format_bytes(INT64_MAX), "9223 PB");
}

TEST(Progress, SilentWhereStderrIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    Progress progress("files", 2);
    std::this_thread::sleep_for(milliseconds(110));
    progress.advance(1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// What `work` writes to stderr while that is a terminal.
template <class F>
std::string on_a_terminal(const F& work) {
  int screen = -1, terminal = -1;
  if (::openpty(&screen, &terminal, nullptr, nullptr, nullptr) != 0) return "no terminal";
  const int before = ::dup(STDERR_FILENO);
  ::dup2(terminal, STDERR_FILENO);
  work();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::fcntl(screen, F_SETFL, O_NONBLOCK);  // the terminal stays open, else what was written may be lost
  std::string seen;
  char buffer[4096];
  for (ssize_t n; (n = ::read(screen, buffer, sizeof buffer)) > 0;) seen.append(buffer, static_cast<size_t>(n));
  ::close(terminal);
  ::close(screen);
  return seen;
}

TEST(Progress, DrawsPartAndClearsTheLine) {
  const std::string seen = on_a_terminal([] {
    Progress progress("files", 4'000'000, Progress::Unit::bytes);
    progress.set(1);  // at once: less than 0.1 s after the start
    std::this_thread::sleep_for(milliseconds(110));
    progress.advance(999'999);
  });
  EXPECT_EQ(seen.find("files [#######.......................]  25% 1.0 MB of 4.0 MB, "), 4u)
      << seen;  // after CR, ESC [ K
  EXPECT_TRUE(seen.ends_with("\r\033[K")) << seen;
}

TEST(Progress, CountsWhereTheTotalIsUnknownOrPassed) {
  EXPECT_NE(on_a_terminal([] {
              Progress progress("rows", 0);
              std::this_thread::sleep_for(milliseconds(110));
              progress.set(7);
            }).find("rows 7 ("),
            std::string::npos);
  EXPECT_NE(on_a_terminal([] {
              Progress progress("rows", 5);
              std::this_thread::sleep_for(milliseconds(110));
              progress.set(7);  // more than was announced
            }).find("] 100% 7 of 5"),
            std::string::npos);
}

}  // namespace
}  // namespace gannet
