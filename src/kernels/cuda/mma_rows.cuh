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
  static constexpr bool kE4m3Scales = false;  // one ue8m0 scale for 32 columns
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
  static constexpr bool kE4m3Scales = false;
  __device__ static void widen(uint32_t w, uint32_t factor, uint32_t& first,
                               uint32_t& second) {  // nibbles 0, 4; 1, 5
    first = times(((w << 12) & 0x80008000u) | ((w << 6) & 0x01C001C0u), factor);
    second = times(((w << 8) & 0x80008000u) | ((w << 2) & 0x01C001C0u), factor);
  }
  static constexpr int kBias = 126;
};
struct Fp4Blocks : Fp4 {
  static constexpr bool kE4m3Scales = true;  // one e4m3 scale for 16 columns
};
struct Bf16 {
  static constexpr int kPerThread = 8, kBits = 16;
  static constexpr bool kE4m3Scales = false;
};

// Where one warp reads: rows g and g + 8 of a tile. A row without codes is all zeros; its scales must still be
// readable.
struct TileRows {
  const std::byte* codes[2];
  const std::byte* scales[2];
};

template <class F>
constexpr int kChunkColumns = 4 * F::kPerThread;

// What a thread's columns in chunk c of one row are multiplied by: a factor, and a second one where one is not
// enough (0: none). Two of each: the halves of the thread's columns may have scales of their own.
struct Factors {
  uint32_t first[2], second[2];
};
template <class F>
__device__ inline Factors factors_of(const std::byte* scales, int chunk, int t) {
  Factors f;
  const int column = chunk * kChunkColumns<F> + t * F::kPerThread;
  if constexpr (F::kE4m3Scales) {
    for (int h = 0; h < 2; ++h) {
      const auto code =
          static_cast<uint32_t>(scales[column / 16 + h]);  // to bf16: 2^-120 times the value, then exact
      const float value = __fmul_rn(__uint_as_float((code & 0x7F) << 20), __uint_as_float((120u + 127) << 23));
      f.first[h] = pair_of_power(F::kBias);
      f.second[h] = (__float_as_uint(value) >> 16) * 0x10001u;
    }
  } else {
    const int s = static_cast<int>(scales[column / 32]), e = s - 127 + F::kBias;
    f.first[0] = f.first[1] = s == 255 ? kNanPair : pair_of_power(e > 127 ? 127 : e);
    f.second[0] = f.second[1] = s != 255 && e > 127 ? pair_of_power(e - 127) : 0;
  }
  return f;
}

// The thread's share of a chunk as operands: step i takes two pairs of columns of each of the two rows.
template <class F>
__device__ inline void widen_chunk(const uint4 (&w)[2], const TileRows& tile, int chunk, int t,
                                   uint32_t (&a)[F::kPerThread / 4][4]) {
  constexpr int kSteps = F::kPerThread / 4, kHalf = kSteps / 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const uint32_t words[4] = {w[r].x, w[r].y, w[r].z, w[r].w};
    if constexpr (F::kBits == 16) {
      for (int step = 0; step < kSteps; ++step) a[step][r] = words[2 * step], a[step][r + 2] = words[2 * step + 1];
    } else {
      const Factors f = factors_of<F>(tile.scales[r], chunk, t);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const uint32_t word = F::kBits == 4 ? words[step / 2] >> (8 * (step % 2)) : words[step];
        const uint32_t second = f.second[step / kHalf];
        F::widen(word, f.first[step / kHalf], a[step][r], a[step][r + 2]);
        if (F::kE4m3Scales || second != 0) {
          a[step][r] = times(a[step][r], second);
          a[step][r + 2] = times(a[step][r + 2], second);
        }
      }
    }
  }
}

// Adds one chunk to acc. x[n] points to token 8 n + g of the block's tokens at column 0, or is null: no such token.
template <class F, int NT>
__device__ inline void mma_chunk(const uint4 (&w)[2], const TileRows& tile, int chunk, int t,
                                 const __nv_bfloat16* const (&x)[NT], float (&acc)[NT][4]) {
  constexpr int kSteps = F::kPerThread / 4, kLoads = F::kPerThread / 8;
  uint32_t a[kSteps][4];
  widen_chunk<F>(w, tile, chunk, t, a);
#pragma unroll
  for (int n = 0; n < NT; ++n) {
    uint32_t pair[4 * kLoads] = {};  // columns (0, 1), (2, 3), ... of the thread's share
    if (x[n] != nullptr)
      for (int i = 0; i < kLoads; ++i) {
        const auto v = reinterpret_cast<const uint4*>(x[n] + chunk * kChunkColumns<F> + t * F::kPerThread)[i];
        pair[4 * i] = v.x, pair[4 * i + 1] = v.y, pair[4 * i + 2] = v.z, pair[4 * i + 3] = v.w;
      }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int first = F::kBits == 4 ? step / 2 * 4 + step % 2 : 2 * step;
      const uint32_t lo = pair[first], hi = pair[F::kBits == 4 ? first + 2 : first + 1];
      if constexpr (F::kBits == 16)
        mma_16x8x16(acc[n], a[step], lo, hi);
      else  // columns (0, 2), (1, 3) of fp8; (0, 4), (1, 5) of fp4
        mma_16x8x16(acc[n], a[step], __byte_perm(lo, hi, 0x5410), __byte_perm(lo, hi, 0x7632));
    }
  }
}

// Adds chunks [begin, end) to acc.
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
        for (int r = 0; r < 2; ++r) {
          const std::byte* row = tile.codes[r];
          w[i][r] = row == nullptr ? uint4{} : load_stream(row + int64_t{c + i} * kRowStep + 16 * t);
        }
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
