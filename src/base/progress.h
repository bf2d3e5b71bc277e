// A progress bar on stderr for long work. Draws only on a terminal, at most 10 times a second; elsewhere it is
// silent. Owner: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace gannet {

class Progress {
 public:
  enum class Unit { count, bytes };
  // total <= 0: unknown, only the count is shown.
  Progress(std::string label, int64_t total, Unit unit = Unit::count);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(int64_t n) { set(done_ + n); }
  void set(int64_t done);

 private:
  void draw();

  std::string label_;
  int64_t total_;
  int64_t done_ = 0;
  Unit unit_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

// "1.3 GB", "97.9 MB", "512 B": decimal units, as disks and networks use them.
std::string format_bytes(int64_t bytes);

}  // namespace gannet
