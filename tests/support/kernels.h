// What tests of kernels share: matrices with NaN-filled outputs and canaries, random weights of every format, and a
// comparator whose bound comes from the caller.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/exec.h"
#include "tensor/weight.h"

namespace gannet::test {

// Random numbers in [-1, 1); the same everywhere, unlike those of std::uniform_real_distribution.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint32_t bits() { return static_cast<uint32_t>(engine_() >> 32); }
  int32_t below(int32_t n) { return static_cast<int32_t>(bits() % static_cast<uint32_t>(n)); }
  float unit() { return static_cast<float>(static_cast<int32_t>(bits())) * 0x1p-31f; }

 private:
  std::mt19937_64 engine_;
};

// Distance from |x| to the next value of the type: the unit of "half an ulp".
inline double ulp(double x, DType type) {
  const int digits = type == DType::bf16 ? 8 : type == DType::f16 ? 11 : 24;
  const double least = type == DType::f16 ? 0x1p-24 : type == DType::bf16 ? 0x1p-133 : 0x1p-149;
  if (!std::isfinite(x) || x == 0) return least;
  return std::max(least, std::ldexp(1.0, std::ilogb(x) - digits + 1));
}

// Accepts with <=, so that a NaN on one side fails. Equal infinities, and NaN where NaN is wanted, pass.
inline bool close(double got, double want, double bound) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= bound;
}

inline float load(const std::byte* at, DType type) {
  if (type == DType::bf16) return to_f32(*reinterpret_cast<const bf16*>(at));
  if (type == DType::f16) return to_f32(*reinterpret_cast<const f16*>(at));
  return *reinterpret_cast<const float*>(at);
}
inline void store(std::byte* at, DType type, float value) {
  if (type == DType::bf16)
    *reinterpret_cast<bf16*>(at) = to_bf16(value);
  else if (type == DType::f16)
    *reinterpret_cast<f16*>(at) = to_f16(value);
  else
    *reinterpret_cast<float*>(at) = value;
}

// A matrix [rows, width] in memory of its own, `gap` elements between rows and `shift` elements off a 64-byte
// boundary. Elements begin as NaN; everything around them holds a canary.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t width, DType type = DType::f32, int64_t gap = 0, int64_t shift = 0)
      : rows_(rows), width_(width), stride_(width + gap), type_(type), size_(dtype_bytes(type)) {
    memory_.assign(static_cast<size_t>(2 * kMargin + (rows * stride_ + shift) * size_ + 64), kCanary);
    const auto at = reinterpret_cast<uintptr_t>(memory_.data()) + kMargin;
    begin_ =
        static_cast<int64_t>((at + 63) / 64 * 64 - reinterpret_cast<uintptr_t>(memory_.data())) + shift * size_;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < width; ++c) set(r, c, std::numeric_limits<float>::quiet_NaN());
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  Matrix(Matrix&&) = default;

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  DType type() const { return type_; }
  std::byte* at(int64_t r, int64_t c) { return memory_.data() + begin_ + (r * stride_ + c) * size_; }
  const std::byte* at(int64_t r, int64_t c) const { return memory_.data() + begin_ + (r * stride_ + c) * size_; }
  float get(int64_t r, int64_t c) const { return load(at(r, c), type_); }
  void set(int64_t r, int64_t c, float value) { store(at(r, c), type_, value); }
  void fill(Random& random, float scale = 1) {
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t c = 0; c < width_; ++c) set(r, c, random.unit() * scale);
  }
  View view() {
    View v(at(0, 0), type_, {rows_, width_});
    v.stride[0] = stride_;
    return v;
  }
  // The same as [rows, heads, width / heads].
  View heads(int64_t n) {
    View v(at(0, 0), type_, {rows_, n, width_ / n});
    v.stride[0] = stride_;
    return v;
  }
  bool canaries_intact() const {
    std::vector<bool> element(memory_.size());
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t b = 0; b < width_ * size_; ++b)
        element[static_cast<size_t>(at(r, 0) + b - memory_.data())] = true;
    for (size_t i = 0; i < memory_.size(); ++i)
      if (!element[i] && memory_[i] != kCanary) return false;
    return true;
  }
  // Everything, margins included: for copies to a device.
  std::byte* memory() { return memory_.data(); }
  int64_t memory_bytes() const { return static_cast<int64_t>(memory_.size()); }
  // Row r here and row s there, bit for bit.
  bool row_equal(int64_t r, const Matrix& other, int64_t s) const {
    return std::memcmp(at(r, 0), other.at(s, 0), static_cast<size_t>(width_ * size_)) == 0;
  }

 private:
  static constexpr int64_t kMargin = 192;
  static constexpr std::byte kCanary{0xA5};
  int64_t rows_, width_, stride_;
  DType type_;
  int64_t size_;
  std::vector<std::byte> memory_;
  int64_t begin_ = 0;
};

// A weight with random codes and scales of ordinary size, rows `gap` bytes apart beyond their length and codes one
// byte off any alignment where the format has no elements wider than that.
struct Weight {
  std::vector<std::byte> codes, scales;
  WeightView view;
};

namespace detail {

inline void put_half(std::byte* at, float value) {
  const f16 half = to_f16(value);
  std::memcpy(at, &half, 2);
}

// Byte offsets of the halves in a block.
inline std::vector<int> half_fields(WeightFormat format) {
  switch (format) {
    case WeightFormat::q4_0:
    case WeightFormat::q5_0:
    case WeightFormat::q8_0:
      return {0};
    case WeightFormat::q4_1:
    case WeightFormat::q5_1:
    case WeightFormat::q4_k:
    case WeightFormat::q5_k:
      return {0, 2};
    case WeightFormat::q2_k:
      return {80, 82};
    case WeightFormat::q3_k:
      return {108};
    case WeightFormat::q6_k:
      return {208};
    default:
      return {};
  }
}

inline void fill_row(WeightFormat format, std::byte* row, int64_t in, Random& random) {
  const WeightFormatInfo& info = weight_format_info(format);
  const int64_t n_blocks = in / info.block_elements;
  for (int64_t i = 0; i < n_blocks * info.block_bytes; ++i) row[i] = static_cast<std::byte>(random.bits());
  for (int64_t i = 0; i < n_blocks; ++i) {
    std::byte* block = row + i * info.block_bytes;
    for (const int field : half_fields(format)) put_half(block + field, random.unit() * 0.05f);
    if (format == WeightFormat::mxfp4_gguf) block[0] = static_cast<std::byte>(118 + random.below(10));
    if (format == WeightFormat::f32) store(block, DType::f32, random.unit());
    if (format == WeightFormat::f16) store(block, DType::f16, random.unit());
    if (format == WeightFormat::bf16) store(block, DType::bf16, random.unit());
    if (format == WeightFormat::fp8_32x32 || format == WeightFormat::fp8_1x32)
      for (int64_t j = 0; j < info.block_bytes; ++j)
        if ((block[j] & std::byte{0x7F}) == std::byte{0x7F}) block[j] = std::byte{0x30};  // no NaN here
  }
}

}  // namespace detail

inline Weight make_weight(WeightFormat format, int32_t out, int32_t in, uint64_t seed, int64_t gap = 0) {
  Random random(seed);
  const WeightFormatInfo& info = weight_format_info(format);
  const bool dense = format == WeightFormat::f32 || format == WeightFormat::f16 || format == WeightFormat::bf16;
  const bool apart =
      format == WeightFormat::fp8_32x32 || format == WeightFormat::fp8_1x32 || format == WeightFormat::mxfp4_1x32;
  Weight w;
  if (dense) gap = (gap + 3) / 4 * 4;
  const int64_t row_bytes = int64_t{in} / info.block_elements * info.block_bytes + gap;
  const int64_t shift = dense ? 4 : 1;
  w.codes.resize(static_cast<size_t>(row_bytes * out + shift));
  w.view = {format, out, in, w.codes.data() + shift, nullptr, row_bytes, 0};
  for (int64_t o = 0; o < out; ++o) detail::fill_row(format, w.codes.data() + shift + o * row_bytes, in, random);
  if (apart) {
    const int64_t scale_row = (int64_t{in} + 31) / 32 + gap;
    const int64_t scale_rows = format == WeightFormat::fp8_32x32 ? (int64_t{out} + 31) / 32 : out;
    w.scales.resize(static_cast<size_t>(scale_row * scale_rows));
    for (std::byte& b : w.scales) b = static_cast<std::byte>(118 + random.below(10));
    w.view.scales = w.scales.data();
    w.view.scale_row_bytes = scale_row;
  }
  return w;
}

inline const std::vector<WeightFormat>& all_formats() {
  static const std::vector<WeightFormat> formats = {
      WeightFormat::f32,       WeightFormat::f16,        WeightFormat::bf16, WeightFormat::fp8_32x32,
      WeightFormat::fp8_1x32,  WeightFormat::mxfp4_1x32, WeightFormat::q4_0, WeightFormat::q4_1,
      WeightFormat::q5_0,      WeightFormat::q5_1,       WeightFormat::q8_0, WeightFormat::q2_k,
      WeightFormat::q3_k,      WeightFormat::q4_k,       WeightFormat::q5_k, WeightFormat::q6_k,
      WeightFormat::mxfp4_gguf};
  return formats;
}

// A pool and an arena for ops to run with. The arena fills with NaN bytes, so that reading what nobody wrote shows.
struct TestExec {
  explicit TestExec(int threads = 2, int64_t bytes = int64_t{4} << 20) : pool(threads, false), arena(bytes) {
    const Arena::Scope scope(arena);
    std::memset(arena.allocate(bytes), 0xFF, static_cast<size_t>(bytes));
  }
  ThreadPool pool;
  Arena arena;
  Exec exec{pool, arena};
};

}  // namespace gannet::test
