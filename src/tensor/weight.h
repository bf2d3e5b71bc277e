// A weight matrix [out, in] as it lies in its file: codes, and scales where the format keeps them apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gannet {

enum class WeightFormat : uint8_t {
  none,
  f32,
  f16,
  bf16,
  fp8_32x32,   // e4m3 codes [out, in]; one e8m0 scale per 32 x 32, scales [ceil(out/32), ceil(in/32)]
  fp8_1x32,    // e4m3 codes [out, in]; one e8m0 scale per row and 32 columns (Engram rows)
  mxfp4_1x32,  // e2m1 pairs [out, in/2], low nibble first; one e8m0 scale per row and 32 columns, scales apart
  // GGUF blocks, scales inside the block. Names are ggml's.
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  mxfp4_gguf,
};

struct WeightFormatInfo {
  std::string_view name;
  int32_t block_elements;  // columns that share one block: `in` must be a multiple
  int32_t block_bytes;     // bytes of `codes` per block
};
const WeightFormatInfo& weight_format_info(WeightFormat format);

struct WeightView {
  WeightFormat format = WeightFormat::none;
  int32_t out = 0, in = 0;
  const std::byte* codes = nullptr;
  const std::byte* scales = nullptr;  // fp8_32x32, fp8_1x32, mxfp4_1x32
  int64_t row_bytes = 0;              // of codes
  int64_t scale_row_bytes = 0;        // of scales; fp8_32x32: from one group of 32 rows to the next

  bool empty() const { return format == WeightFormat::none; }
  int64_t bytes() const;                            // codes and scales
  WeightView rows(int32_t begin, int32_t n) const;  // fp8_32x32: begin must be a multiple of 32
};

// Row `row`, columns [begin, begin + n), as exact fp32 values; begin and n are multiples of the format's block (any
// for f32, f16, bf16). The reference meaning of every format: fast kernels must produce the same fp32 values.
//   fp8_32x32, fp8_1x32  e4m3(code) * 2^(scale-127)
//   mxfp4_*              e2m1(code) * 2^(scale-127)
//   q4_0 q5_0 q8_0 q3_k q6_k    fp32 product of the block's scale(s) and the integer code, one rounding each
//   q4_1 q5_1            fl(fl(d * q) + m)
//   q2_k q4_k q5_k       fl(fl(fl(d * sc) * q) - fl(dmin * m))
// Source: OCP MX 1.0 for the fp8/fp4 forms; ggml's block definitions for the rest.
void dequantize(const WeightView& weight, int64_t row, int64_t begin, int64_t n, float* out);

}  // namespace gannet
