// Integer products with vpmaddwd: int16 weights times int16 activations, pairs summed in int32. Nothing saturates:
// a pair is at most 2 * 4096 * 16256 < 2^31, a block's sum at most 32 * 4096 * 16256 < 2^31.
#include <cstddef>

#include "kernels/cpu/int_formats_avx2.h"
#include "kernels/cpu/int_linear_kernels.h"

namespace gannet {
namespace {

// Lane n: the sum of p[n].
__m256i sum_each(const __m256i p[8]) {
  const __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(p[0], p[1]), _mm256_hadd_epi32(p[2], p[3]));
  const __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(p[4], p[5]), _mm256_hadd_epi32(p[6], p[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

__m256i load(const int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

// One block's term of the sum in int_linear.h.
template <bool kAffine>
__m256 add_block(__m256 acc, __m256i exact, __m256 d, __m256 m, const float* scale, const float* shift) {
  acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), _mm256_mul_ps(d, _mm256_broadcast_ss(scale)), acc);
  if constexpr (kAffine) acc = _mm256_fmadd_ps(m, _mm256_broadcast_ss(shift), acc);
  return acc;
}

// Of 8 outputs the first n.
void store_outs(float* y, __m256 v, int n) {
  if (n >= 8) return _mm256_storeu_ps(y, v);
  alignas(32) float all[8];
  _mm256_store_ps(all, v);
  for (int i = 0; i < n; ++i) y[i] = all[i];
}

// Row pointers of outputs [first, first + 8); beyond the last it is taken again and its result dropped.
void rows_of(const IntWeightRows& w, int first, const uint8_t* rows[8]) {
  for (int n = 0; n < 8; ++n) {
    const int o = first + n < w.n_out ? first + n : w.n_out - 1;
    rows[n] = w.codes + o * w.row_bytes;
  }
}

// R rows of x against outputs [first, first + 8).
template <class Format, int R>
void direct_tile(const IntWeightRows& w, int first, const IntProduct& p, int row) {
  // The rows of a tile follow each other in memory, so that is the order in which lines are asked for, 4 KiB ahead.
  constexpr int kTileBytes = 8 * Format::kBytes / Format::kParts, kLines = (kTileBytes + 63) / 64;
  constexpr int kAhead = 4096;
  const uint8_t* rows[8];
  rows_of(w, first, rows);
  const uint8_t* fetch = rows[0] + kAhead;
  const int16_t* q[R];
  __m256 acc[R], d[Format::kParts], m[Format::kParts];
  for (int r = 0; r < R; ++r) {
    q[r] = p.q + int64_t{row + r} * w.n_blocks * 32;
    acc[r] = _mm256_setzero_ps();
  }
  for (int b = 0; b < w.n_blocks; ++b, fetch += kTileBytes) {
    const int part = b % Format::kParts;
    const int64_t at = int64_t{b / Format::kParts} * Format::kBytes;
    for (int i = 0; i < kLines; ++i) __builtin_prefetch(fetch + 64 * i);
    if (part == 0) Format::scales(rows, at, d, m);
    __m256i sums[R][8];
#pragma GCC unroll 8
    for (int n = 0; n < 8; ++n) {
      __m256i v[2];
      Format::weights(rows[n] + at, part, v);
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r)
        sums[r][n] = _mm256_add_epi32(_mm256_madd_epi16(v[0], load(q[r] + b * 32)),
                                      _mm256_madd_epi16(v[1], load(q[r] + b * 32 + 16)));
    }
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      const int64_t s = int64_t{row + r} * w.n_blocks + b;
      acc[r] = add_block<Format::kAffine>(acc[r], sum_each(sums[r]), d[part], m[part], p.scale + s, p.shift + s);
    }
  }
  for (int r = 0; r < R; ++r) store_outs(p.y + (row + r) * p.y_stride + first, acc[r], w.n_out - first);
}

template <class Format>
void direct(const IntWeightRows& w, const IntProduct& p) {
  for (int row = 0; row < p.n_rows; row += 2)
    for (int first = 0; first < w.n_out; first += 8)
      if (p.n_rows - row >= 2)
        direct_tile<Format, 2>(w, first, p, row);
      else
        direct_tile<Format, 1>(w, first, p, row);
}

// Some blocks of kIntPanel outputs. Block b: int16 [16 pairs of columns][kIntPanel][2], d and m f32 [kIntPanel].
struct Panel {
  int16_t* w;
  float *d, *m;
  explicit Panel(std::byte* at)
      : w(reinterpret_cast<int16_t*>(at)),
        d(reinterpret_cast<float*>(at + int64_t{kIntPanel} * kIntChunkBlocks * 64)),
        m(d + kIntPanel * kIntChunkBlocks) {}
};

template <class Format>
void pack(const IntWeightRows& w, int first_out, int first_block, int n_blocks, const Panel& panel) {
  for (int half = 0; half < 2; ++half) {
    const uint8_t* rows[8];
    rows_of(w, first_out + 8 * half, rows);
    __m256 d[Format::kParts], m[Format::kParts];
    for (int b = 0; b < n_blocks; ++b) {
      const int part = (first_block + b) % Format::kParts;
      const int64_t at = int64_t{(first_block + b) / Format::kParts} * Format::kBytes;
      if (part == 0) Format::scales(rows, at, d, m);  // chunks begin with a super-block
      _mm256_store_ps(panel.d + b * kIntPanel + 8 * half, d[part]);
      if constexpr (Format::kAffine) _mm256_store_ps(panel.m + b * kIntPanel + 8 * half, m[part]);
      __m256i v[2][8];
      for (int n = 0; n < 8; ++n) {
        __m256i both[2];
        Format::weights(rows[n] + at, part, both);
        v[0][n] = both[0];
        v[1][n] = both[1];
      }
      int16_t* to = panel.w + b * (kIntPanel * 32) + 16 * half;
      for (int i = 0; i < 2; ++i) {
        transpose(v[i]);
        for (int j = 0; j < 8; ++j)
          _mm256_store_si256(reinterpret_cast<__m256i*>(to + (8 * i + j) * 2 * kIntPanel), v[i][j]);
      }
    }
  }
}

// Where R rows stand: their columns and scales from the panel's first block on, and their sums so far.
template <int R>
struct RowTile {
  const int16_t* q[R];
  const float *scale[R], *shift[R];
  float* y[R];
};

template <bool kAffine, int R>
void panel_tile(const Panel& panel, int n_blocks, const RowTile<R>& t, bool first, int n_out) {
  alignas(32) float acc[R][kIntPanel] = {};
  if (!first)
    for (int r = 0; r < R; ++r) std::memcpy(acc[r], t.y[r], static_cast<size_t>(n_out) * 4);
  for (int b = 0; b < n_blocks; ++b) {
    __m256i sum[R][2];
    for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    const int16_t* w = panel.w + b * (kIntPanel * 32);
#pragma GCC unroll 4
    for (int j = 0; j < 16; ++j) {
      const __m256i w0 = load(w + j * 32), w1 = load(w + j * 32 + 16);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        int32_t pair = 0;
        std::memcpy(&pair, t.q[r] + b * 32 + 2 * j, 4);
        const __m256i x = _mm256_set1_epi32(pair);
        sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(w0, x));
        sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(w1, x));
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const __m256 d = _mm256_load_ps(panel.d + b * kIntPanel + 8 * h);
        const __m256 m = kAffine ? _mm256_load_ps(panel.m + b * kIntPanel + 8 * h) : _mm256_setzero_ps();
        float* at = acc[r] + 8 * h;
        _mm256_store_ps(at, add_block<kAffine>(_mm256_load_ps(at), sum[r][h], d, m, t.scale[r] + b, t.shift[r] + b));
      }
  }
  for (int r = 0; r < R; ++r) std::memcpy(t.y[r], acc[r], static_cast<size_t>(n_out) * 4);
}

template <bool kAffine, int R>
int panel_rows(const Panel& panel, const IntWeightRows& w, const IntProduct& p, int row, int out, int block, int n) {
  const int n_out = w.n_out - out < kIntPanel ? w.n_out - out : kIntPanel;
  for (; row + R <= p.n_rows; row += R) {
    RowTile<R> tile;
    for (int r = 0; r < R; ++r) {
      const int64_t s = int64_t{row + r} * w.n_blocks + block;
      tile.q[r] = p.q + s * 32;
      tile.scale[r] = p.scale + s;
      tile.shift[r] = p.shift + s;
      tile.y[r] = p.y + (row + r) * p.y_stride + out;
    }
    panel_tile<kAffine, R>(panel, n, tile, block == 0, n_out);
  }
  return row;
}

template <class Format>
void packed(const IntWeightRows& w, const IntProduct& p, std::byte* scratch) {
  static_assert(kIntChunkBlocks % Format::kParts == 0);
  const Panel panel(scratch);
  for (int out = 0; out < w.n_out; out += kIntPanel)
    for (int block = 0; block < w.n_blocks || block == 0; block += kIntChunkBlocks) {
      const int n = w.n_blocks - block < kIntChunkBlocks ? w.n_blocks - block : kIntChunkBlocks;
      pack<Format>(w, out, block, n, panel);
      int row = panel_rows<Format::kAffine, 4>(panel, w, p, 0, out, block, n);
      row = panel_rows<Format::kAffine, 2>(panel, w, p, row, out, block, n);
      panel_rows<Format::kAffine, 1>(panel, w, p, row, out, block, n);
    }
}

template <class Format>
IntKernels kernels_of() {
  return {2, direct<Format>, packed<Format>};
}

}  // namespace

IntKernels int_kernels_avx2(WeightFormat format) {
  switch (format) {
    case WeightFormat::q4_0:
      return kernels_of<Q4<false>>();
    case WeightFormat::q4_1:
      return kernels_of<Q4<true>>();
    case WeightFormat::q5_0:
      return kernels_of<Q5<false>>();
    case WeightFormat::q5_1:
      return kernels_of<Q5<true>>();
    case WeightFormat::q8_0:
      return kernels_of<Q8>();
    case WeightFormat::mxfp4_gguf:
      return kernels_of<Mxfp4>();
    case WeightFormat::q4_k:
      return kernels_of<Q45K<false>>();
    case WeightFormat::q5_k:
      return kernels_of<Q45K<true>>();
    case WeightFormat::q6_k:
      return kernels_of<Q6K>();
    default:
      return {};
  }
}

void int_row_avx2(const float* x, int32_t n_blocks, int16_t* q, float* scale, float* shift) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  for (int b = 0; b < n_blocks; ++b, x += 32, q += 32) {
    __m256 v[4];
    __m256i most = _mm256_setzero_si256();  // magnitudes order as their bits do, NaN above all
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm256_loadu_ps(x + 8 * i);
      most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude));
    }
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xB1));
    const float a = _mm_cvtss_f32(_mm_castsi128_ps(four));
    if (_mm_cvtsi128_si32(four) >= 0x7F800000 || a < 0x1p-110f) {
      scale[b] = shift[b] = a < 0x1p-110f ? 0.0f : __builtin_nanf("");
      for (int i = 0; i < 2; ++i)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 16 * i), _mm256_setzero_si256());
      continue;
    }
    const __m256 inverse = _mm256_set1_ps(16256.0f / a);
    __m256i sum = _mm256_setzero_si256();
    for (int i = 0; i < 2; ++i) {
      const __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(v[2 * i], inverse));
      const __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(v[2 * i + 1], inverse));
      sum = _mm256_add_epi32(sum, _mm256_add_epi32(low, high));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 16 * i),
                          _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8));
    }
    __m128i total = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    total = _mm_add_epi32(total, _mm_shuffle_epi32(total, 0x4E));
    total = _mm_add_epi32(total, _mm_shuffle_epi32(total, 0xB1));
    scale[b] = a / 16256.0f;
    shift[b] = scale[b] * static_cast<float>(_mm_cvtsi128_si32(total));
  }
}

}  // namespace gannet
