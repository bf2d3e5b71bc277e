#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace gannet {

std::string format_bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

Progress::Progress(std::string label, int64_t total, Unit unit)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::set(int64_t done) {
  done_ = done;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  draw();
}

void Progress::draw() {
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  const auto shown = [&](int64_t n) { return unit_ == Unit::bytes ? format_bytes(n) : fmt::format("{}", n); };
  const auto rate = shown(static_cast<int64_t>(static_cast<double>(done_) / std::max(seconds, 1e-3)));
  std::string line;
  if (total_ > 0) {
    const double part = std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    const auto filled = static_cast<size_t>(part * 30);
    const double left = part > 0 ? seconds * (1 - part) / part : 0;
    line = fmt::format("{} [{}{}] {:3.0f}% {} of {}, {}/s, {:.0f} s left", label_, std::string(filled, '#'),
                       std::string(30 - filled, '.'), part * 100, shown(done_), shown(total_), rate, left);
  } else {
    line = fmt::format("{} {} ({}/s)", label_, shown(done_), rate);
  }
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace gannet
