// Rows of activations as fp32, whatever their element type, and back. For op implementations on the CPU.
#pragma once

#include <algorithm>
#include <cstring>

#include "tensor/view.h"

namespace gannet {

// Elements of one row: the product of all dimensions but the first, which must be contiguous.
inline int64_t row_elements(const View& x) {
  int64_t n = 1;
  for (int i = x.rank - 1; i > 0; --i) {
    GANNET_CHECK(x.stride[static_cast<size_t>(i)] == n || x.dim(i) == 1, "dimension {} is not contiguous", i);
    n *= x.dim(i);
  }
  return n;
}

// Row `row`, `n` elements from element `begin` on. Types f32 and bf16.
inline void read_row(const View& x, int64_t row, int64_t begin, int64_t n, float* out) {
  if (x.dtype == DType::f32) {
    std::memcpy(out, x.as<float>() + row * x.stride[0] + begin, static_cast<size_t>(n) * sizeof(float));
  } else {
    const bf16* from = x.as<bf16>() + row * x.stride[0] + begin;
    for (int64_t i = 0; i < n; ++i) out[i] = to_f32(from[i]);
  }
}
inline void write_row(const float* values, const View& x, int64_t row, int64_t begin, int64_t n) {
  if (x.dtype == DType::f32) {
    std::memcpy(x.as<float>() + row * x.stride[0] + begin, values, static_cast<size_t>(n) * sizeof(float));
  } else {
    bf16* to = x.as<bf16>() + row * x.stride[0] + begin;
    for (int64_t i = 0; i < n; ++i) to[i] = to_bf16(values[i]);
  }
}

inline bool is_activation(DType type) { return type == DType::f32 || type == DType::bf16; }

}  // namespace gannet
