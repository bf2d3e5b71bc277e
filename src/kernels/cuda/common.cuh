// What device code of several ops shares: rows of activations, launches, and functions whose bits equal those of
// the CPU's (kernels/cpu/simd_math.h). CUDA files only; they are compiled without contraction of products and sums.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/args_check.h"
#include "runtime/cuda/check.h"
#include "runtime/exec.h"
#include "tensor/view.h"

namespace gannet::cuda {

inline cudaStream_t stream_of(const Exec& exec) { return static_cast<cudaStream_t>(exec.stream); }
inline void launched(const char* kernel, std::source_location where = std::source_location::current()) {
  cuda_ok(cudaGetLastError(), kernel, where);
}
inline bool on_device(const Machine& machine) { return machine.device != nullptr; }
inline unsigned blocks_for(int64_t n, int64_t per_block) {
  return static_cast<unsigned>((n + per_block - 1) / per_block);
}

// Rows of f32 or bf16; heads are rows apart by `head` elements.
struct Rows {
  std::byte* data = nullptr;
  int64_t row = 0, head = 0;  // strides in elements
  bool bf16 = false;

  explicit Rows(const View& v)
      : data(v.data), row(v.stride[0]), head(v.rank > 2 ? v.stride[1] : 0), bf16(v.dtype == DType::bf16) {}
  __device__ float get(int64_t i) const {
    return bf16 ? __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[i])
                : reinterpret_cast<const float*>(data)[i];
  }
  __device__ void set(int64_t i, float v) const {
    if (bf16)
      reinterpret_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(v);
    else
      reinterpret_cast<float*>(data)[i] = v;
  }
};

// e^x, operation by operation as simd::exp.
__device__ inline float exp_as_cpu(float x) {
  const float bounded = fminf(88.37f, fmaxf(-87.0f, x));
  const float n = rintf(__fmul_rn(bounded, 1.44269504f));
  float r = __fmaf_rn(n, -0.693359375f, bounded);
  r = __fmaf_rn(n, 2.12194440e-4f, r);
  float p = 1.0f / 5040;
  p = __fmaf_rn(p, r, 1.0f / 720);
  p = __fmaf_rn(p, r, 1.0f / 120);
  p = __fmaf_rn(p, r, 1.0f / 24);
  p = __fmaf_rn(p, r, 1.0f / 6);
  p = __fmaf_rn(p, r, 0.5f);
  p = __fmaf_rn(p, r, 1.0f);
  p = __fmaf_rn(p, r, 1.0f);
  const float value = __fmul_rn(p, __int_as_float((static_cast<int>(n) + 127) << 23));
  if (x != x) return x;
  return x > 88.37f ? __int_as_float(0x7F800000) : x < -87.0f ? 0.0f : value;
}
__device__ inline float silu_as_cpu(float x) { return __fdiv_rn(x, __fadd_rn(1.0f, exp_as_cpu(-x))); }

// Sum of 16 lanes j in the tree of linear.h: j+8, j+4, j+2, j+1. All 16 lanes get it.
__device__ inline float sum16(float v) {
  for (int step = 8; step > 0; step >>= 1) v = __fadd_rn(v, __shfl_xor_sync(0xFFFFFFFFu, v, step, 16));
  return v;
}
__device__ inline float max16(float v) {
  for (int step = 8; step > 0; step >>= 1) v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, step, 16));
  return v;
}

}  // namespace gannet::cuda
