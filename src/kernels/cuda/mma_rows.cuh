// The inner product of decode: 16 weight rows times up to 8 * NT tokens by one warp, on tensor cores.
//
// Weights are the 16 x 16 operand, read from memory once, 16 bytes a thread, and widened to bf16 in registers,
// which is exact: e4m3 * 2^k and e2m1 * 2^k have at most 4 significant bits (values below 2^-133 round). Tokens are
// the narrow operand. The order of k inside a 16 x 16 step is free as long as both operands agree, so each thread
// takes consecutive columns of its rows and no value moves between threads.
//
// Sum  fp32; a step of 16 columns adds its 16 exact products and the accumulator after aligning them to the
// largest,
//      each cut to 24 bits or more: at most 18 * 2^-23 of the sum of magnitudes a step (Fasi et al. 2021 measured
//      the alignment of such units).
#pragma once

#include "kernels/cuda/common.cuh"
#include "tensor/weight.h"

namespace gannet::cuda {

__device__ inline void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline uint4 load_stream(const std::byte* at) {  // read once: leaves L1 to the tokens
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

__device__ inline uint32_t times(uint32_t pair, uint32_t factor) {
  uint32_t r;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(pair), "r"(factor));
  return r;
}
// 2^e twice, as a pair of bf16; -133 <= e <= 127.
__device__ inline uint32_t pair_of_power(int e) {
  const uint32_t bits = e >= -126 ? static_cast<uint32_t>(e + 127) << 7 : 1u << (e + 133);
  return bits | bits << 16;
}
constexpr uint32_t kNanPair = 0x7FC07FC0u;

// A format as the kernel sees it: 16 bytes of a row are kPerThread columns, of which every 4 feed one step; a chunk
// is the columns that the four threads of a row read together.
struct Fp8 {
  static constexpr int kPerThread = 16, kBits = 8;
  // Even bytes as one pair, odd bytes as the other: 4 exponent and 3 mantissa bits under bf16's 8 exponent bits
  // read as value * 2^-120, subnormals included; the factor brings that and the scale in.
  __device__ static void widen(uint32_t w, uint32_t factor, uint32_t& first, uint32_t& second) {
    first = times(((w << 8) & 0x80008000u) | ((w << 4) & 0x07F007F0u), factor);
    second = times((w & 0x80008000u) | ((w >> 4) & 0x07F007F0u), factor);
  }
  static constexpr int kBias = 120;
};
struct Fp4 {
  static constexpr int kPerThread = 32, kBits = 4;
  __device__ static void widen(uint32_t w, uint32_t factor, uint32_t& first,
                               uint32_t& second) {  // nibbles 0, 4; 1, 5
    first = times(((w << 12) & 0x80008000u) | ((w << 6) & 0x01C001C0u), factor);
    second = times(((w << 8) & 0x80008000u) | ((w << 2) & 0x01C001C0u), factor);
  }
  static constexpr int kBias = 126;
};
struct Bf16 {
  static constexpr int kPerThread = 8, kBits = 16;
};

// Where one warp reads: rows g and g + 8 of a tile, at this thread's columns.
struct TileRows {
  const std::byte* codes[2];
  const std::byte* scales[2];
};

template <class F>
constexpr int kChunkColumns = 4 * F::kPerThread;

// Factor pair of a thread's columns in chunk c, and what is left of a scale too large for one factor (else 0).
template <class F>
__device__ inline void factors(const std::byte* scales, int chunk, int t, uint32_t& factor, uint32_t& rest) {
  const int s = static_cast<int>(scales[(chunk * kChunkColumns<F> + t * F::kPerThread) / 32]);
  const int e = s - 127 + F::kBias;
  factor = s == 255 ? kNanPair : pair_of_power(e > 127 ? 127 : e);
  rest = s != 255 && e > 127 ? pair_of_power(e - 127) : 0;
}

// Adds chunks [begin, end) to acc. x[n] points to token 8 n + g of each tile at column 0, or is null: no such
// token.
template <class F, int NT>
__device__ inline void mma_chunk(const uint4 (&w)[2], const TileRows& tile, int chunk, int t,
                                 const __nv_bfloat16* const (&x)[NT], float (&acc)[NT][4]) {
  const uint32_t words[2][4] = {{w[0].x, w[0].y, w[0].z, w[0].w}, {w[1].x, w[1].y, w[1].z, w[1].w}};
  uint32_t factor[2], rest[2];
  if constexpr (F::kBits < 16)
    for (int r = 0; r < 2; ++r) factors<F>(tile.scales[r], chunk, t, factor[r], rest[r]);
  constexpr int kSteps = F::kPerThread / 4;  // of 16 columns
  constexpr int kStepsPerWord = F::kBits == 4 ? 2 : 1;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    uint32_t a[4];
    if constexpr (F::kBits == 16) {
      for (int r = 0; r < 2; ++r) {
        a[r] = words[r][2 * step];
        a[r + 2] = words[r][2 * step + 1];
      }
    } else {
      for (int r = 0; r < 2; ++r) {
        const uint32_t word = words[r][step / kStepsPerWord] >> (F::kBits == 4 ? 8 * (step % 2) : 0);
        F::widen(word, factor[r], a[r], a[r + 2]);
        if (rest[r] != 0) {
          a[r] = times(a[r], rest[r]);
          a[r + 2] = times(a[r + 2], rest[r]);
        }
      }
    }
    // Columns of this step, from the thread's first: fp8 {0..3} + 4 step; fp4 {0, 1, 4, 5} + 2 (step % 2) + 8 (step
    // / 2).
    const int first = F::kBits == 4 ? step / 2 * 8 + step % 2 * 2 : 4 * step;
    const int second = F::kBits == 4 ? first + 4 : first + 2;
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      uint32_t lo = 0, hi = 0;
      if (x[n] != nullptr) {
        const __nv_bfloat16* at = x[n] + chunk * kChunkColumns<F> + t * F::kPerThread;
        lo = *reinterpret_cast<const uint32_t*>(at + first);
        hi = *reinterpret_cast<const uint32_t*>(at + second);
      }
      if constexpr (F::kBits == 16)
        mma_16x8x16(acc[n], a, lo, hi);
      else  // columns (0, 2), (1, 3) of fp8; (0, 4), (1, 5) of fp4
        mma_16x8x16(acc[n], a, __byte_perm(lo, hi, 0x5410), __byte_perm(lo, hi, 0x7632));
    }
  }
}

template <class F, int NT>
__device__ inline void mma_rows(const TileRows& tile, int begin, int end, int t,
                                const __nv_bfloat16* const (&x)[NT], float (&acc)[NT][4]) {
  constexpr int kDepth = 4;  // chunks on their way: 8 loads of 16 bytes a thread
  uint4 w[kDepth][2];
  constexpr int kRowStep = 64;  // bytes of codes of a chunk in one row
  for (int c = begin; c < end; c += kDepth) {
#pragma unroll
    for (int i = 0; i < kDepth; ++i)
      if (c + i < end)
        for (int r = 0; r < 2; ++r) w[i][r] = load_stream(tile.codes[r] + int64_t{c + i} * kRowStep + 16 * t);
#pragma unroll
    for (int i = 0; i < kDepth; ++i)
      if (c + i < end) mma_chunk<F, NT>(w[i], tile, c + i, t, x, acc);
  }
}

// Into how many parts K is cut: from the weight's shape alone, so that prefill and decode sum in one order. As many
// warps as fill the chip (2,048), at most 8.
inline int split_count(int64_t out, int64_t chunks) {
  int n = 1;
  while (n < 8 && out / 16 * n < 2048 && 2 * n <= chunks) n *= 2;
  return n;
}
__device__ inline int split_begin(int chunks, int part, int n_parts) {
  return static_cast<int>(int64_t{chunks} * part / n_parts);
}

constexpr int kWarps = 8;

// Sums the parts of a block's tiles in rising order. partial [kWarps][16][8 NT]; warp w = tile * n_parts + part.
template <int NT>
__device__ inline void store_partial(float* partial, int warp, int lane, const float (&acc)[NT][4]) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int n = 0; n < NT; ++n)
    for (int i = 0; i < 4; ++i) partial[(warp * 16 + g + i / 2 * 8) * (8 * NT) + 8 * n + 2 * t + i % 2] = acc[n][i];
}
template <int NT>
__device__ inline float sum_partial(const float* partial, int tile, int n_parts, int row, int token) {
  float sum = 0;
  for (int p = 0; p < n_parts; ++p)
    sum = __fadd_rn(sum, partial[((tile * n_parts + p) * 16 + row) * (8 * NT) + token]);
  return sum;
}

}  // namespace gannet::cuda
