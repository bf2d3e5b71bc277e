#include <cmath>
#include <cstring>

#include "kernels/args_check.h"
#include "kernels/int_linear.h"

namespace gannet {
namespace {

struct Block {
  int32_t w[kIntBlock];
  float d = 0, m = 0;
};

float half(const uint8_t* at) {
  f16 value;
  std::memcpy(&value, at, 2);
  return to_f32(value);
}

Block small_block(WeightFormat format, const uint8_t* at) {
  const bool five = format == WeightFormat::q5_0 || format == WeightFormat::q5_1;
  const bool affine = format == WeightFormat::q4_1 || format == WeightFormat::q5_1;
  Block block;
  block.d = half(at);
  if (affine) block.m = half(at + 2);
  at += affine ? 4 : 2;
  uint32_t high = 0;
  if (five) {
    std::memcpy(&high, at, 4);
    at += 4;
  }
  const int zero = affine ? 0 : five ? 16 : 8;
  for (int i = 0; i < kIntBlock; ++i) {
    const int low = i < 16 ? at[i] & 15 : at[i - 16] >> 4;
    block.w[i] = (low | static_cast<int>(high >> i & 1u) << 4) - zero;
  }
  return block;
}

Block mxfp4_block(const uint8_t* at) {
  constexpr int kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  Block block;
  block.d = at[0] == 255 ? NAN : std::ldexp(1.0f, at[0] - 128);
  for (int i = 0; i < kIntBlock; ++i) block.w[i] = kTwice[i < 16 ? at[1 + i] & 15 : at[1 + i - 16] >> 4];
  return block;
}

// Part p of the eight of a super-block.
Block k_block(const uint8_t* super, int p, bool five) {
  const uint8_t* packed = super + 4;
  const int scale = p < 4 ? packed[p] & 63 : (packed[p + 4] & 15) | (packed[p - 4] >> 6) << 4;
  const int minimum = p < 4 ? packed[p + 4] & 63 : (packed[p + 4] >> 4) | (packed[p] >> 6) << 4;
  const uint8_t* high = super + 16;
  const uint8_t* low = super + (five ? 48 : 16) + p / 2 * 32;
  Block block;
  block.d = half(super) * static_cast<float>(scale);
  block.m = -(half(super + 2) * static_cast<float>(minimum));
  for (int i = 0; i < kIntBlock; ++i) {
    block.w[i] = low[i] >> (p % 2 * 4) & 15;
    if (five) block.w[i] |= (high[i] >> p & 1) << 4;
  }
  return block;
}

Block q6_block(const uint8_t* super, int p) {
  const int group = p / 4, quarter = p % 4;
  Block block;
  block.d = half(super + 208);
  for (int i = 0; i < kIntBlock; ++i) {
    const int low = super[group * 64 + quarter % 2 * 32 + i] >> (quarter / 2 * 4) & 15;
    const int high = super[128 + group * 32 + i] >> (2 * quarter) & 3;
    block.w[i] = ((low | high << 4) - 32) * static_cast<int8_t>(super[192 + 2 * p + i / 16]);
  }
  return block;
}

Block block_of(const WeightView& weight, int64_t o, int64_t b) {
  const auto* row = reinterpret_cast<const uint8_t*>(weight.codes) + o * weight.row_bytes;
  const WeightFormatInfo& info = weight_format_info(weight.format);
  const uint8_t* at = row + b * kIntBlock / info.block_elements * info.block_bytes;
  Block block;
  switch (weight.format) {
    case WeightFormat::q8_0:
      block.d = half(at);
      for (int i = 0; i < kIntBlock; ++i) block.w[i] = static_cast<int8_t>(at[2 + i]);
      return block;
    case WeightFormat::mxfp4_gguf:
      return mxfp4_block(at);
    case WeightFormat::q4_k:
    case WeightFormat::q5_k:
      return k_block(at, static_cast<int>(b % 8), weight.format == WeightFormat::q5_k);
    case WeightFormat::q6_k:
      return q6_block(at, static_cast<int>(b % 8));
    default:
      return small_block(weight.format, at);
  }
}

void output(const IntLinearArgs::Part& part, const IntRowsView& x, int64_t o) {
  const int64_t n_blocks = x.width / kIntBlock;
  for (int64_t t = 0; t < x.n_rows; ++t) {
    double sum = 0;
    for (int64_t b = 0; b < n_blocks; ++b) {
      const Block block = block_of(part.weight, o, b);
      const int16_t* q = x.q + t * x.width + b * kIntBlock;
      int64_t exact = 0;
      for (int i = 0; i < kIntBlock; ++i) exact += int64_t{block.w[i]} * q[i];
      sum += double{block.d} * double{x.scale[t * n_blocks + b]} * static_cast<double>(exact);
      sum += double{block.m} * double{x.shift[t * n_blocks + b]};
    }
    if (part.bias != nullptr) sum += double{part.bias[o]};
    reinterpret_cast<float*>(row_at(part.y, t))[o] = static_cast<float>(sum);
  }
}

void run(const IntLinear& op, const IntLinearArgs& args, Exec& exec) {
  check_int_linear(op, args);
  for (int i = 0; i < op.n_parts; ++i)
    exec.pool.parallel_for(op.part[i].out, 16, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) output(args.part[i], args.x, o);
    });
}

constexpr IntLinearVariant kVariants[] = {{"ref", [](const IntLinear&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const IntLinearVariant> int_linear_ref() { return kVariants; }

}  // namespace gannet
