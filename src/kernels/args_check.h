// Checks at the border of an op: the views it was given have the shapes and types its descriptor says.
#pragma once

#include "tensor/view.h"

namespace gannet {

// `v` is [rows, width] of `type`, its last dimension contiguous. Views of no rows may have no memory.
inline void check_matrix(const View& v, int64_t rows, int64_t width, DType type) {
  GANNET_CHECK(v.rank == 2 && v.dim(0) == rows && v.dim(1) == width, "rank {}, asked [{}, {}]", v.rank, rows,
               width);
  GANNET_CHECK(v.dtype == type, "dtype {}, asked {}", static_cast<int>(v.dtype), static_cast<int>(type));
  GANNET_CHECK(width <= 1 || v.stride[1] == 1, "stride {} inside a row", v.stride[1]);
  GANNET_CHECK(v.data != nullptr || rows == 0 || width == 0, "no memory for [{}, {}]", rows, width);
}

// `v` is [rows, heads, width] of `type`, its last dimension contiguous.
inline void check_heads(const View& v, int64_t rows, int64_t heads, int64_t width, DType type) {
  GANNET_CHECK(v.rank == 3 && v.dim(0) == rows && v.dim(1) == heads, "rank {}, asked [{}, {}, C]", v.rank, rows,
               heads);
  GANNET_CHECK(v.dim(2) == width && v.dtype == type, "width {}, asked {}; dtype {}", v.dim(2), width,
               static_cast<int>(v.dtype));
  GANNET_CHECK(width <= 1 || v.stride[2] == 1, "stride {} inside a row", v.stride[2]);
  GANNET_CHECK(v.data != nullptr || rows * heads * width == 0, "no memory for {} rows", rows);
}

// f32 or bf16 element as fp32, and back with one rounding.
inline float load_element(const std::byte* row, DType type, int64_t i) {
  return type == DType::bf16 ? to_f32(reinterpret_cast<const bf16*>(row)[i])
                             : reinterpret_cast<const float*>(row)[i];
}
inline void store_element(std::byte* row, DType type, int64_t i, float value) {
  if (type == DType::bf16)
    reinterpret_cast<bf16*>(row)[i] = to_bf16(value);
  else
    reinterpret_cast<float*>(row)[i] = value;
}
inline std::byte* row_at(const View& v, int64_t i) { return v.data + i * v.stride[0] * dtype_bytes(v.dtype); }
inline std::byte* head_at(const View& v, int64_t i, int64_t h) {
  return v.data + (i * v.stride[0] + h * v.stride[1]) * dtype_bytes(v.dtype);
}

}  // namespace gannet
