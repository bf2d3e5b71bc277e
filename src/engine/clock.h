// Time of the steady clock, in microseconds: comparable across threads of this process only.
#pragma once

#include <chrono>
#include <cstdint>

namespace gannet::engine {

inline int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace gannet::engine
