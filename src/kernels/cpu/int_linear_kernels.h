// The inner loops of `int_rows` and `int_linear` for one instruction set, on plain pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/weight.h"

namespace gannet {

constexpr int kIntPanel = 16;         // outputs of one packed panel
constexpr int kIntChunkBlocks = 24;   // blocks of one packed panel: 24 KiB of int16, which stay in the first-level cache
constexpr int64_t kIntPanelBytes =    // weights, then d and m of each block
    int64_t{kIntPanel} * kIntChunkBlocks * (32 * 2 + 2 * 4);

// Outputs [0, n_out) of a weight, all columns.
struct IntWeightRows {
  const uint8_t* codes = nullptr;
  int64_t row_bytes = 0;
  int32_t n_out = 0, n_blocks = 0;
};

// Rows of activations and where their outputs go. y[t * y_stride + o]; strides in elements.
struct IntProduct {
  const int16_t* q = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  int32_t n_rows = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
};

struct IntKernels {
  int32_t direct_rows = 0;  // up to this many rows, `direct` beats `packed`
  // Codes go from the file into registers.
  void (*direct)(const IntWeightRows& w, const IntProduct& p);
  // Through panels in `scratch` (kIntPanelBytes, 64-byte aligned), for many rows.
  void (*packed)(const IntWeightRows& w, const IntProduct& p, std::byte* scratch);
};

IntKernels int_kernels_avx2(WeightFormat format);

// One row of int_rows.h.
void int_row_avx2(const float* x, int32_t n_blocks, int16_t* q, float* scale, float* shift);

}  // namespace gannet
