// Independent tasks over the threads of an Exec, for op implementations on the CPU that keep scratch per thread.
#pragma once

#include <atomic>

#include "runtime/exec.h"

namespace gannet {

// Calls f(task, thread) once for each task in [0, n). Which thread takes a task must not matter to the result.
template <class F>
void for_each_task(Exec& exec, int64_t n, const F& f) {
  if (n <= 1 || exec.pool.size() == 1) {
    for (int64_t task = 0; task < n; ++task) f(task, 0);
    return;
  }
  std::atomic<int64_t> next{0};
  exec.pool.run([&](int thread) {
    for (int64_t task = next.fetch_add(1); task < n; task = next.fetch_add(1)) f(task, thread);
  });
}

}  // namespace gannet
