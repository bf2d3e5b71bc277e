// The meaning of every RowFormat, one row at a time: fp32 channels to codes and scales, and back. Scalar and exact;
// fast kernels must produce the same codes and the same values.
//
//   format     block  amax floor  scale                                  code
//   fp8_ue8m0  32     1e-4        2^ceil(log2(amax * fl32(1/448)))       e4m3(clamp(x / scale, +-448))
//   fp4_ue8m0  32     6 * 2^-126  2^ceil(log2(amax * fl32(1/6)))         e2m1(clamp(x / scale, +-6))
//   fp4_e4m3   16     6 * 2^-9    e4m3(amax / 6), saturating at 448      e2m1(clamp(x / scale, +-6)), true division
//   f32        the value itself;  f16, bf16: rounded to nearest even
//
// e2m1 pairs: the even channel in the low nibble. A decoded value is exact in bf16.
// Refuses  (aborts) a width that is not a multiple of the block.
// Source   the released cache quantisers of DeepSeek-V4.1.
#pragma once

#include <cstddef>

#include "kernels/kv_view.h"

namespace gannet {

void encode_row(RowFormat format, const float* x, int32_t width, std::byte* codes, std::byte* scales);
void decode_row(RowFormat format, const std::byte* codes, const std::byte* scales, int32_t width, float* out);

}  // namespace gannet
