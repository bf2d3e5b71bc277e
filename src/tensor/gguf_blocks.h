// Block formats of GGUF files, as bytes. Layouts are ggml's; all fields little-endian, no padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/weight.h"

namespace gannet {

// `n_blocks` consecutive blocks at `codes` to exact fp32 values (see dequantize() for the rounding of each format).
void dequantize_gguf(WeightFormat format, const std::byte* codes, int64_t n_blocks, float* out);

}  // namespace gannet
