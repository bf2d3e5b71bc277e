// A borrowed dense tensor: pointer, dtype, up to 4 dimensions, strides in elements. Owns nothing; the memory may be
// on a device. Copy by value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/check.h"
#include "tensor/dtype.h"

namespace gannet {

constexpr int kMaxRank = 4;

struct View {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape{};
  std::array<int64_t, kMaxRank> stride{};  // elements; the last is 1 wherever an op asks for contiguous rows

  View() = default;
  // Row-major contiguous.
  View(void* memory, DType type, std::initializer_list<int64_t> dims)
      : data(static_cast<std::byte*>(memory)), dtype(type), rank(static_cast<int>(dims.size())) {
    GANNET_CHECK(rank <= kMaxRank, "rank {}", rank);
    int i = 0;
    for (const int64_t n : dims) shape[static_cast<size_t>(i++)] = n;
    int64_t step = 1;
    for (i = rank - 1; i >= 0; --i) {
      stride[static_cast<size_t>(i)] = step;
      step *= shape[static_cast<size_t>(i)];
    }
  }

  bool empty() const { return data == nullptr; }
  int64_t dim(int i) const { return shape[static_cast<size_t>(i)]; }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dim(i);
    return rank == 0 ? 0 : n;
  }
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }

  // Row i of the first dimension: a view of rank - 1.
  View row(int64_t i) const { return drop_first(data + i * stride[0] * dtype_bytes(dtype)); }
  // Rows [begin, begin + n) of the first dimension.
  View rows(int64_t begin, int64_t n) const {
    GANNET_CHECK(begin >= 0 && n >= 0 && begin + n <= dim(0), "rows {} + {} of {}", begin, n, dim(0));
    View v = *this;
    v.data += begin * stride[0] * dtype_bytes(dtype);
    v.shape[0] = n;
    return v;
  }
  // The same elements under another shape; this view must be contiguous.
  View reshape(std::initializer_list<int64_t> dims) const {
    View v(data, dtype, dims);
    GANNET_CHECK(v.elements() == elements(), "reshape {} elements to {}", elements(), v.elements());
    return v;
  }
  // Columns [begin, begin + n) of the last dimension.
  View columns(int64_t begin, int64_t n) const {
    View v = *this;
    const auto last = static_cast<size_t>(rank - 1);
    GANNET_CHECK(begin >= 0 && n >= 0 && begin + n <= shape[last], "columns {} + {} of {}", begin, n, shape[last]);
    v.data += begin * dtype_bytes(dtype);
    v.shape[last] = n;
    return v;
  }

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }

 private:
  View drop_first(std::byte* at) const {
    View v;
    v.data = at;
    v.dtype = dtype;
    v.rank = rank - 1;
    for (int i = 0; i < v.rank; ++i) {
      v.shape[static_cast<size_t>(i)] = shape[static_cast<size_t>(i) + 1];
      v.stride[static_cast<size_t>(i)] = stride[static_cast<size_t>(i) + 1];
    }
    return v;
  }
};

}  // namespace gannet
