// Spreads the rows of an element-wise op over threads. Included by code for every CPU alone, never by *_avx*.cc.
#pragma once

#include "runtime/exec.h"

namespace gannet {

// Calls f(row) for every row. A thread gets at least 16 Ki elements at once, so a decode step stays on its own
// thread: handing out work costs about a microsecond.
template <class F>
void for_rows(Exec& exec, int64_t n_rows, int64_t width, const F& f) {
  const int64_t grain = 1 + (int64_t{16} << 10) / (width > 0 ? width : 1);
  exec.pool.parallel_for(n_rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace gannet
