// Weight elements as lanes of linear.h read them: columns j and j + 16 of a block of 32, as exact fp32 values.
#pragma once

#include "kernels/cuda/common.cuh"
#include "tensor/weight.h"

namespace gannet::cuda {

__device__ inline float half_at(const std::byte* at) {
  return __half2float(__ushort_as_half(*reinterpret_cast<const unsigned short*>(at)));
}
__device__ inline float power_of(uint8_t e) {  // 2^(e - 127); 255 is NaN
  if (e == 255) return __int_as_float(0x7FC00000);
  return e == 0 ? __int_as_float(0x00400000) : __int_as_float(e << 23);
}
__device__ inline float e4m3_value(uint8_t code) {
  if ((code & 0x7F) == 0x7F) return __int_as_float(0x7FC00000);
  const float magnitude = __fmul_rn(__int_as_float((code & 0x7F) << 20), __int_as_float((120 + 127) << 23));
  return code & 0x80 ? -magnitude : magnitude;
}
__device__ inline float e2m1_value(uint8_t code) {
  const float magnitude = __fmul_rn(__int_as_float((code & 7) << 22), __int_as_float((126 + 127) << 23));
  return code & 8 ? -magnitude : magnitude;
}

// Two elements of block b of a row for lane j. `in` guards formats that may end inside a block.
template <WeightFormat F>
__device__ inline void lane_pair(const std::byte* codes, const std::byte* scales, int b, int j, int in,
                                 float (&w)[2]) {
  if constexpr (F == WeightFormat::f32 || F == WeightFormat::f16 || F == WeightFormat::bf16) {
    for (int h = 0; h < 2; ++h) {
      const int k = 32 * b + 16 * h + j;
      if (k >= in)
        w[h] = 0;
      else if constexpr (F == WeightFormat::f32)
        w[h] = reinterpret_cast<const float*>(codes)[k];
      else if constexpr (F == WeightFormat::f16)
        w[h] = half_at(codes + 2 * k);
      else
        w[h] = __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(codes)[k]);
    }
  } else if constexpr (F == WeightFormat::fp8_32x32 || F == WeightFormat::fp8_1x32) {
    const float scale = power_of(static_cast<uint8_t>(scales[b]));
    for (int h = 0; h < 2; ++h)
      w[h] = __fmul_rn(e4m3_value(static_cast<uint8_t>(codes[32 * b + 16 * h + j])), scale);
  } else if constexpr (F == WeightFormat::mxfp4_1x32) {
    const float scale = power_of(static_cast<uint8_t>(scales[b]));
    for (int h = 0; h < 2; ++h) {
      const auto byte = static_cast<uint8_t>(codes[16 * b + 8 * h + j / 2]);
      w[h] = __fmul_rn(e2m1_value(j % 2 ? byte >> 4 : byte & 15), scale);
    }
  } else if constexpr (F == WeightFormat::q8_0) {
    const std::byte* block = codes + int64_t{b} * 34;
    const float d = half_at(block);
    for (int h = 0; h < 2; ++h) w[h] = __fmul_rn(d, static_cast<float>(static_cast<int8_t>(block[2 + 16 * h + j])));
  } else if constexpr (F == WeightFormat::q4_0) {
    const std::byte* block = codes + int64_t{b} * 18;
    const float d = half_at(block);
    const auto byte = static_cast<uint8_t>(block[2 + j]);
    w[0] = __fmul_rn(d, static_cast<float>(int{byte & 15} - 8));
    w[1] = __fmul_rn(d, static_cast<float>(int{byte >> 4} - 8));
  } else {
    static_assert(F == WeightFormat::q4_1);
    const std::byte* block = codes + int64_t{b} * 20;
    const float d = half_at(block), m = half_at(block + 2);
    const auto byte = static_cast<uint8_t>(block[4 + j]);
    w[0] = __fadd_rn(__fmul_rn(d, static_cast<float>(byte & 15)), m);
    w[1] = __fadd_rn(__fmul_rn(d, static_cast<float>(byte >> 4)), m);
  }
}

// Calls body(std::integral_constant<WeightFormat, F>) for the format at hand; false when it has no lanes.
template <class Body>
bool with_lane_format(WeightFormat format, const Body& body) {
  switch (format) {
#define GANNET_LANES(F)                                            \
  case WeightFormat::F:                                            \
    body(std::integral_constant<WeightFormat, WeightFormat::F>{}); \
    return true;
    GANNET_LANES(f32)
    GANNET_LANES(f16)
    GANNET_LANES(bf16)
    GANNET_LANES(fp8_32x32)
    GANNET_LANES(fp8_1x32)
    GANNET_LANES(mxfp4_1x32)
    GANNET_LANES(q8_0)
    GANNET_LANES(q4_0)
    GANNET_LANES(q4_1)
#undef GANNET_LANES
    default:
      return false;
  }
}

}  // namespace gannet::cuda
