#include "tensor/weight.h"

#include <cstring>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/gguf_blocks.h"

namespace gannet {
namespace {

constexpr WeightFormatInfo kInfo[] = {
    {"none", 1, 0},       {"F32", 1, 4},          {"F16", 1, 2},     {"BF16", 1, 2},     {"FP8 32x32", 32, 32},
    {"FP8 1x32", 32, 32}, {"MXFP4 1x32", 32, 16}, {"Q4_0", 32, 18},  {"Q4_1", 32, 20},   {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},     {"Q8_0", 32, 34},       {"Q2_K", 256, 84}, {"Q3_K", 256, 110}, {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},   {"Q6_K", 256, 210},     {"MXFP4", 32, 17},
};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

const WeightFormatInfo& weight_format_info(WeightFormat format) { return kInfo[static_cast<size_t>(format)]; }

int64_t WeightView::bytes() const {
  const int64_t scale_rows = format == WeightFormat::fp8_32x32 ? (int64_t{out} + 31) / 32 : out;
  return row_bytes * out + (scales != nullptr ? scale_row_bytes * scale_rows : 0);
}

WeightView WeightView::rows(int32_t begin, int32_t n) const {
  GANNET_CHECK(begin >= 0 && n >= 0 && begin <= out - n, "rows {} + {} of {}", begin, n, out);
  WeightView part = *this;
  part.out = n;
  part.codes += row_bytes * begin;
  if (scales != nullptr) {
    GANNET_CHECK(format != WeightFormat::fp8_32x32 || begin % 32 == 0, "row {} cuts a 32 x 32 block", begin);
    part.scales += scale_row_bytes * (format == WeightFormat::fp8_32x32 ? begin / 32 : begin);
  }
  return part;
}

void dequantize(const WeightView& weight, int64_t row, int64_t begin, int64_t n, float* out) {
  const WeightFormatInfo& info = weight_format_info(weight.format);
  GANNET_CHECK(begin % info.block_elements == 0 && n % info.block_elements == 0 && begin + n <= weight.in,
               "columns {} + {} of {}", begin, n, weight.in);
  const std::byte* codes = weight.codes + row * weight.row_bytes + begin / info.block_elements * info.block_bytes;
  const auto scale = [&](int64_t column) {
    const int64_t scale_row = weight.format == WeightFormat::fp8_32x32 ? row / 32 : row;
    return e8m0_to_f32(static_cast<uint8_t>(weight.scales[scale_row * weight.scale_row_bytes + column / 32]));
  };
  switch (weight.format) {
    case WeightFormat::none:
      GANNET_CHECK(false, "no weight");
      return;
    case WeightFormat::f32:
      std::memcpy(out, codes, static_cast<size_t>(n) * 4);
      return;
    case WeightFormat::f16:
      for (int64_t i = 0; i < n; ++i) out[i] = to_f32(load<f16>(codes + 2 * i));
      return;
    case WeightFormat::bf16:
      for (int64_t i = 0; i < n; ++i) out[i] = to_f32(load<bf16>(codes + 2 * i));
      return;
    case WeightFormat::fp8_32x32:
    case WeightFormat::fp8_1x32:
      for (int64_t i = 0; i < n; ++i) out[i] = e4m3_to_f32(static_cast<uint8_t>(codes[i])) * scale(begin + i);
      return;
    case WeightFormat::mxfp4_1x32:
      for (int64_t i = 0; i < n; ++i) {
        const auto pair = static_cast<uint8_t>(codes[i / 2]);
        out[i] = e2m1_to_f32(i % 2 == 0 ? pair & 15 : pair >> 4) * scale(begin + i);
      }
      return;
    default:
      dequantize_gguf(weight.format, codes, n / info.block_elements, out);
  }
}

}  // namespace gannet
