// Loops of `linear` over a format of linear_formats.h, in the summation order of linear.h: lane j of an accumulator
// takes k = j, j + 16, ...
#pragma once

#include "kernels/cpu/linear_formats.h"
#include "kernels/cpu/linear_kernels.h"

namespace gannet::simd {

// Of R rows the first n_rows are wanted.
template <class S, int R, int N>
void store_sums(const typename S::F (&acc)[R][N], int n_rows, float* y, int64_t y_stride) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (r >= n_rows) return;
    float* to = y + r * y_stride;
    if constexpr (N == 4) {
      const auto four = S::sum4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
      __builtin_memcpy(to, &four, 16);
    } else {
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) to[n] = S::sum(acc[r][n]);
    }
  }
}

// How far ahead of its use a code is fetched: about 2 KiB, in the rows of a later tile where those are short.
// Without it a core waits for the shared cache: hardware does not follow N short rows at once.
template <class S>
int64_t fetch_ahead(int64_t row_bytes, int n_rows) {
  const int64_t tile = row_bytes * n_rows;
  return tile >= 8192 || tile <= 0 ? 1024 : (2048 + tile - 1) / tile * tile;
}

// Up to R rows of x against N outputs, weights straight from their codes. Where rows are fewer, the last is done
// again and dropped: that costs less than another instance.
template <class S, class Format, int R, int N>
void direct_tile(const WeightRows& w, int first_out, const ProductRows& p, int first_row, int n_rows) {
  using F = typename S::F;
  F acc[R][N];
  const uint8_t* codes[N];
  const uint8_t* scales[N];
  const float* x[R];
  for (int r = 0; r < R; ++r) x[r] = p.x + (first_row + (r < n_rows ? r : n_rows - 1)) * p.x_stride;
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
    codes[n] = w.codes + (first_out + n) * w.row_bytes;
    scales[n] = w.scales + int64_t{(w.scale_first + first_out + n) >> w.scale_shift} * w.scale_row_bytes;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r][n] = S::zero();
  }
  const int n_blocks = w.k / 32;
  const int64_t ahead = fetch_ahead<S>(w.row_bytes, N);
  for (int first = 0; first < n_blocks; first += kChunkBlocks) {
    const int count = n_blocks - first < kChunkBlocks ? n_blocks - first : kChunkBlocks;
    float sc[N][kPlane * Format::kScales + 1];
    for (int n = 0; n < N; ++n) Format::scales(codes[n], scales[n], first, count, sc[n]);
    for (int i = 0; i < count; ++i) {
      const int64_t at = int64_t{first + i} * 32;
      F v[N][2];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        __builtin_prefetch(codes[n] + (first + i) * Format::kFetch + ahead);
        Format::block(codes[n], first + i, sc[n] + i, v[n]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F low = S::load(x[r] + at), high = S::load(x[r] + at + 16);
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) acc[r][n] = S::fma(high, v[n][1], S::fma(low, v[n][0], acc[r][n]));
      }
    }
  }
  if constexpr (Format::kDense) {
    const int begin = n_blocks * 32, left = w.k - begin;
    if (left > 0)
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        F v[2];
        Format::tail(codes[n], begin, left, v);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const float* at = x[r] + begin;
          acc[r][n] = S::fma(S::load_n(at, left < 16 ? left : 16), v[0], acc[r][n]);
          if (left > 16) acc[r][n] = S::fma(S::load_n(at + 16, left - 16), v[1], acc[r][n]);
        }
      }
  }
  store_sums<S, R, N>(acc, n_rows, p.y + first_row * p.y_stride + first_out, p.y_stride);
}

template <class S, class Format, int R, int N>
void direct_outs(const WeightRows& w, const ProductRows& p, int row, int n_rows) {
  int o = 0;
  for (; o + N <= w.n_out; o += N) direct_tile<S, Format, R, N>(w, o, p, row, n_rows);
  for (; o < w.n_out; ++o) direct_tile<S, Format, R, 1>(w, o, p, row, n_rows);
}

template <class S, class Format>
void direct(const WeightRows& w, const ProductRows& p) {
  for (int row = 0; row < p.n_rows;) {
    const int left = p.n_rows - row;
    if constexpr (S::kTileRows >= 4) {
      const int n = left < 8 ? left : 8;
      if (n == 1)
        direct_outs<S, Format, 1, 4>(w, p, row, n);
      else if (n == 2)
        direct_outs<S, Format, 2, 4>(w, p, row, n);
      else if (n <= 4)
        direct_outs<S, Format, 4, 4>(w, p, row, n);
      else if (n <= 6)
        direct_outs<S, Format, 6, 2>(w, p, row, n);
      else
        direct_outs<S, Format, 8, 2>(w, p, row, n);
      row += n;
    } else {
      const int n = left < 2 ? left : 2;
      if (n == 1)
        direct_outs<S, Format, 1, 4>(w, p, row, n);
      else
        direct_outs<S, Format, 2, 2>(w, p, row, n);
      row += n;
    }
  }
}

template <class S, class Format>
void dequantize_rows(const WeightRows& w, float* out) {
  using F = typename S::F;
  const int n_blocks = w.k / 32;
  for (int o = 0; o < w.n_out; ++o, out += w.k) {
    const uint8_t* codes = w.codes + o * w.row_bytes;
    const uint8_t* scales = w.scales + int64_t{(w.scale_first + o) >> w.scale_shift} * w.scale_row_bytes;
    float sc[kPlane * Format::kScales + 1];
    F v[2];
    for (int b = 0; b < n_blocks; ++b) {
      if (b % kChunkBlocks == 0)
        Format::scales(codes, scales, b, n_blocks - b < kChunkBlocks ? n_blocks - b : kChunkBlocks, sc);
      Format::block(codes, b, sc + b % kChunkBlocks, v);
      S::store(out + b * 32, v[0]);
      S::store(out + b * 32 + 16, v[1]);
    }
    if constexpr (Format::kDense) {
      const int begin = n_blocks * 32, left = w.k - begin;
      if (left > 0) {
        Format::tail(codes, begin, left, v);
        S::store_n(out + begin, v[0], left < 16 ? left : 16);
        if (left > 16) S::store_n(out + begin + 16, v[1], left - 16);
      }
    }
  }
}

// R rows of x against N rows of fp32 weights.
template <class S, int R, int N>
void product_tile(const float* w, int64_t w_stride, int k, const float* x, int64_t x_stride, float* y,
                  int64_t y_stride) {
  using F = typename S::F;
  F acc[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = S::zero();
  int i = 0;
  for (; i + 16 <= k; i += 16) {
    F v[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) v[n] = S::load(w + n * w_stride + i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F a = S::load(x + r * x_stride + i);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) acc[r][n] = S::fma(a, v[n], acc[r][n]);
    }
  }
  if (i < k)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n)
        acc[r][n] =
            S::fma(S::load_n(x + r * x_stride + i, k - i), S::load_n(w + n * w_stride + i, k - i), acc[r][n]);
  store_sums<S, R, N>(acc, R, y, y_stride);
}

template <class S, int R>
void product_outs(const float* w, int64_t w_stride, int n_out, int k, const ProductRows& p, int row) {
  constexpr int N = S::kTileOuts;
  const float* x = p.x + row * p.x_stride;
  float* y = p.y + row * p.y_stride;
  int o = 0;
  for (; o + N <= n_out; o += N)
    product_tile<S, R, N>(w + o * w_stride, w_stride, k, x, p.x_stride, y + o, p.y_stride);
  for (; o < n_out; ++o) product_tile<S, R, 1>(w + o * w_stride, w_stride, k, x, p.x_stride, y + o, p.y_stride);
}

template <class S>
void product(const float* w, int64_t w_stride, int32_t n_out, int32_t k, const ProductRows& p) {
  int row = 0;
  for (; row + S::kTileRows <= p.n_rows; row += S::kTileRows)
    product_outs<S, S::kTileRows>(w, w_stride, n_out, k, p, row);
  if constexpr (S::kTileRows > 4)
    if (p.n_rows - row >= 4) {
      product_outs<S, 4>(w, w_stride, n_out, k, p, row);
      row += 4;
    }
  if constexpr (S::kTileRows > 2)
    if (p.n_rows - row >= 2) {
      product_outs<S, 2>(w, w_stride, n_out, k, p, row);
      row += 2;
    }
  if (row < p.n_rows) product_outs<S, 1>(w, w_stride, n_out, k, p, row);
}

template <class S, class Format>
LinearKernels kernels_of() {
  return {S::kTileRows >= 4 ? 8 : 2, direct<S, Format>, dequantize_rows<S, Format>, product<S>};
}

}  // namespace gannet::simd
