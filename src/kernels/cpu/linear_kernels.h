// The inner loops of `linear` for one instruction set, on plain pointers: files built for that set export nothing
// else.
#pragma once

#include <cstdint>

#include "tensor/weight.h"

namespace gannet {

// Output rows [0, n_out) of a weight, all columns.
struct WeightRows {
  const uint8_t* codes = nullptr;
  int64_t row_bytes = 0;
  const uint8_t* scales =
      nullptr;  // scale row of output o: scales + ((scale_first + o) >> scale_shift) * scale_row_bytes
  int64_t scale_row_bytes = 0;
  int32_t scale_first = 0, scale_shift = 0;
  int32_t n_out = 0, k = 0;
};

// Outputs [first, first + n) of a weight. Code for every CPU.
WeightRows weight_rows(const WeightView& weight, int64_t first, int64_t n);

// y[t * y_stride + o] = the sum of linear.h over x[t * x_stride + k]; strides in floats.
struct ProductRows {
  const float* x = nullptr;
  int64_t x_stride = 0;
  int32_t n_rows = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
};

struct LinearKernels {
  int32_t direct_rows = 0;  // up to this many rows, `direct` beats `dequantize` and `product`
  // Weights go from their codes into registers.
  void (*direct)(const WeightRows& w, const ProductRows& p);
  // Exact fp32 values to out[o * k ...].
  void (*dequantize)(const WeightRows& w, float* out);
  // Over fp32 weights w[o * w_stride + k].
  void (*product)(const float* w, int64_t w_stride, int32_t n_out, int32_t k, const ProductRows& p);
};

LinearKernels linear_kernels_avx2(WeightFormat format);
LinearKernels linear_kernels_avx512(WeightFormat format);

}  // namespace gannet
