#include "base/log.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace gannet::log {
namespace {
std::atomic<Level> threshold{Level::info};  // the one process-wide setting: where diagnostics go
constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
}  // namespace

void set_level(Level level) { threshold.store(level, std::memory_order_relaxed); }
bool enabled(Level level) { return level >= threshold.load(std::memory_order_relaxed); }

void write(Level level, std::string_view message) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now).count() % 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  const std::string line = fmt::format("{:02d}:{:02d}:{:02d}.{:03d} {} {}\n", utc.tm_hour, utc.tm_min, utc.tm_sec,
                                       millis, kNames[static_cast<size_t>(level)], message);
  std::fwrite(line.data(), 1, line.size(), stderr);  // one call, so lines of threads do not mix
}

}  // namespace gannet::log
