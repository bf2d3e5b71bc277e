#include "weights/scales.h"

#include <array>
#include <cstring>

namespace gannet::weights {
namespace {

// Where the fp16 scales of a GGUF block lie; -1 for none.
struct HalfOffsets {
  int first = -1, second = -1;
};

HalfOffsets half_offsets(WeightFormat format) {
  switch (format) {
    case WeightFormat::q4_0:
    case WeightFormat::q5_0:
    case WeightFormat::q8_0:
      return {0, -1};
    case WeightFormat::q4_1:
    case WeightFormat::q5_1:
    case WeightFormat::q4_k:
    case WeightFormat::q5_k:
      return {0, 2};
    case WeightFormat::q2_k:
      return {80, 82};
    case WeightFormat::q3_k:
      return {108, -1};
    case WeightFormat::q6_k:
      return {208, -1};
    default:
      return {};
  }
}

bool half_is_finite(const std::byte* at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, 2);
  return (bits & 0x7C00u) != 0x7C00u;
}

}  // namespace

std::optional<int64_t> first_bad_scale_row(const WeightView& w) {
  if (w.scales != nullptr) {
    const int64_t rows = w.format == WeightFormat::fp8_32x32 ? (int64_t{w.out} + 31) / 32 : w.out;
    const void* bad = std::memchr(w.scales, 255, static_cast<size_t>(rows * w.scale_row_bytes));
    if (bad == nullptr) return std::nullopt;
    const int64_t row = (static_cast<const std::byte*>(bad) - w.scales) / w.scale_row_bytes;
    return w.format == WeightFormat::fp8_32x32 ? row * 32 : row;
  }
  const WeightFormatInfo& info = weight_format_info(w.format);
  const HalfOffsets offsets = half_offsets(w.format);
  if (offsets.first < 0 && w.format != WeightFormat::mxfp4_gguf) return std::nullopt;
  for (int64_t row = 0; row < w.out; ++row)
    for (int64_t b = 0; b < w.in / info.block_elements; ++b) {
      const std::byte* block = w.codes + row * w.row_bytes + b * info.block_bytes;
      if (w.format == WeightFormat::mxfp4_gguf
              ? block[0] == std::byte{255}
              : !half_is_finite(block + offsets.first) ||
                    (offsets.second >= 0 && !half_is_finite(block + offsets.second)))
        return row;
    }
  return std::nullopt;
}

}  // namespace gannet::weights
