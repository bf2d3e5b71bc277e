#include "weights/resident.h"

#include <algorithm>
#include <cstring>

#include "runtime/device.h"

namespace gannet::weights {
namespace {

constexpr int64_t kAlign = 16;  // one load of a thread

int64_t row_bytes(const WeightView& w) {
  const WeightFormatInfo& info = weight_format_info(w.format);
  return int64_t{w.in} / info.block_elements * info.block_bytes;
}
int64_t padded_row(const WeightView& w) { return (row_bytes(w) + kAlign - 1) / kAlign * kAlign; }
int64_t scale_rows(const WeightView& w) {
  return w.format == WeightFormat::fp8_32x32 ? (int64_t{w.out} + 31) / 32 : w.out;
}

}  // namespace

int64_t device_bytes(const WeightView& weight) {
  const int64_t scales = weight.scales == nullptr ? 0 : scale_rows(weight) * weight.scale_row_bytes;
  return padded_row(weight) * weight.out + scales + 512;
}

WeightView resident(const WeightView& weight, const Machine& machine) {
  if (machine.device == nullptr || weight.empty()) return weight;
  Device& device = *machine.device;
  WeightView copy = weight;
  copy.row_bytes = padded_row(weight);
  std::byte* codes = device.allocate(copy.row_bytes * weight.out);
  copy.codes = codes;
  if (copy.row_bytes == weight.row_bytes) {
    device.upload(codes, weight.codes, copy.row_bytes * weight.out);
  } else {
    const int64_t rows_at_once = std::max<int64_t>(1, (int64_t{4} << 20) / copy.row_bytes);
    std::vector<std::byte> piece(static_cast<size_t>(rows_at_once * copy.row_bytes));
    for (int64_t first = 0; first < weight.out; first += rows_at_once) {
      const int64_t n = std::min(rows_at_once, weight.out - first);
      for (int64_t o = 0; o < n; ++o)
        std::memcpy(piece.data() + o * copy.row_bytes, weight.codes + (first + o) * weight.row_bytes,
                    static_cast<size_t>(row_bytes(weight)));
      device.upload(codes + first * copy.row_bytes, piece.data(), n * copy.row_bytes);
    }
  }
  if (weight.scales != nullptr) {
    const int64_t bytes = scale_rows(weight) * weight.scale_row_bytes;
    std::byte* scales = device.allocate(bytes);
    device.upload(scales, weight.scales, bytes);
    copy.scales = scales;
  }
  return copy;
}

const float* device_copy(const std::vector<float>& values, const Machine& machine) {
  if (values.empty() || machine.device == nullptr) return nullptr;
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
  std::byte* at = machine.device->allocate(bytes);
  machine.device->upload(at, values.data(), bytes);
  return reinterpret_cast<const float*>(at);
}

}  // namespace gannet::weights
