#include "comm/local/local_experts.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace gannet::comm {

Dispatched LocalExperts::dispatch(const View& x, const int32_t* expert, const float* weight, int32_t n_chosen,
                                  Exec& exec) {
  const auto n_rows = static_cast<int32_t>(x.dim(0));
  const int64_t n = int64_t{n_rows} * n_chosen;
  const auto row_bytes = static_cast<size_t>(x.dim(1) * dtype_bytes(x.dtype));
  int32_t* offset = exec.arena.array<int32_t>(n_experts_ + 1);
  int32_t* next = exec.arena.array<int32_t>(n_experts_);
  int32_t* place = exec.arena.array<int32_t>(n);
  float* weights = exec.arena.array<float>(n);
  const View rows = exec.arena.tensor(x.dtype, {n, x.dim(1)});

  std::fill_n(offset, n_experts_ + 1, 0);
  for (int64_t i = 0; i < n; ++i) {
    GANNET_CHECK(expert[i] >= 0 && expert[i] < n_experts_, "expert {} of {}", expert[i], n_experts_);
    ++offset[expert[i] + 1];
  }
  for (int32_t e = 0; e < n_experts_; ++e) offset[e + 1] += offset[e];
  std::copy_n(offset, n_experts_, next);
  for (int64_t i = 0; i < n; ++i) {
    place[i] = next[expert[i]]++;
    weights[place[i]] = weight[i];
  }
  exec.pool.parallel_for(n_rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int32_t* places = place + t * n_chosen;
      for (int32_t k = 0; k < n_chosen; ++k) std::memcpy(rows.row(places[k]).data, x.row(t).data, row_bytes);
      std::sort(places, places + n_chosen);  // rows lie by expert, so rising places are rising experts
    }
  });
  return {rows, offset, weights, place, n_rows, n_chosen};
}

void LocalExperts::combine(const Dispatched& dispatched, const View& results, View out, Exec& exec) {
  GANNET_CHECK(out.dtype == DType::f32 && out.dim(0) == dispatched.n_rows && out.dim(1) == results.dim(1),
               "out of {} x {}", out.dim(0), out.dim(1));
  const int64_t width = results.dim(1);
  exec.pool.parallel_for(dispatched.n_rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* sum = out.row(t).as<float>();
      for (int32_t k = 0; k < dispatched.n_chosen; ++k) {
        const View row = results.row(dispatched.place[t * dispatched.n_chosen + k]);
        if (row.dtype == DType::f32) {
          const float* y = row.as<float>();
          for (int64_t c = 0; c < width; ++c) sum[c] = k == 0 ? y[c] : sum[c] + y[c];
        } else {
          const bf16* y = row.as<bf16>();
          for (int64_t c = 0; c < width; ++c) sum[c] = k == 0 ? to_f32(y[c]) : sum[c] + to_f32(y[c]);
        }
      }
    }
  });
}

int64_t LocalExperts::workspace_bytes(int32_t max_rows, int32_t n_chosen, int32_t width) const {
  const int64_t n = int64_t{max_rows} * n_chosen;
  return (int64_t{n_experts_} * 2 + 1) * 4 + n * (8 + int64_t{width} * 4) + 5 * 64;
}

}  // namespace gannet::comm
