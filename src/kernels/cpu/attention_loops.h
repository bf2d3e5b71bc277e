// The loops of attention_kernels.h over `Simd`, in the summation order of attention_gqa.h.
#pragma once

#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/simd_math.h"

namespace gannet::simd {

template <class S>
void widen_row(const std::byte* row, RowFormat format, int32_t n, float* out) {  // n a multiple of 16
  for (int32_t i = 0; i < n; i += 16) {
    if (format == RowFormat::f16)
      S::store(out + i, S::from_f16(reinterpret_cast<const uint16_t*>(row) + i));
    else if (format == RowFormat::bf16)
      S::store(out + i, S::from_bf16(reinterpret_cast<const uint16_t*>(row) + i));
    else
      S::store(out + i, S::load(reinterpret_cast<const float*>(row) + i));
  }
}

// Scores of Q queries against 4 keys.
template <class S, int Q>
void score_tile(const float* q, const float* keys, int32_t d, float scale, float* scores) {
  typename S::F acc[Q][4];
  for (int i = 0; i < Q; ++i)
    for (int j = 0; j < 4; ++j) acc[i][j] = S::zero();
  for (int32_t k = 0; k < d; k += 16) {
    typename S::F key[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) key[j] = S::load(keys + j * d + k);
#pragma GCC unroll 4
    for (int i = 0; i < Q; ++i) {
      const auto query = S::load(q + i * d + k);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) acc[i][j] = S::fma(query, key[j], acc[i][j]);
    }
  }
  for (int i = 0; i < Q; ++i) {
    const auto four = S::mul4(S::sum4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]), scale);
    __builtin_memcpy(scores + i * kCutKeys, &four, 16);
  }
}

// acc of Q queries over `n` keys, channels [0, 16 * N).
template <class S, int Q, int N>
void value_tile(const float* p, const float* values, int32_t d, int32_t n, float* acc, int32_t acc_stride) {
  typename S::F a[Q][N];
  for (int i = 0; i < Q; ++i)
    for (int c = 0; c < N; ++c) a[i][c] = S::load(acc + i * acc_stride + 16 * c);
  for (int32_t j = 0; j < n; ++j) {
    typename S::F v[N];
#pragma GCC unroll 4
    for (int c = 0; c < N; ++c) v[c] = S::load(values + j * d + 16 * c);
#pragma GCC unroll 4
    for (int i = 0; i < Q; ++i) {
      const auto weight = S::set1(p[i * kCutKeys + j]);
#pragma GCC unroll 4
      for (int c = 0; c < N; ++c) a[i][c] = S::fma(weight, v[c], a[i][c]);
    }
  }
  for (int i = 0; i < Q; ++i)
    for (int c = 0; c < N; ++c) S::store(acc + i * acc_stride + 16 * c, a[i][c]);
}

template <class S, int Q>
void value_channels(const float* p, const float* values, int32_t d, int32_t n, float* acc, int32_t acc_stride) {
  constexpr int N = S::kTileRows >= 4 ? 4 : 2;
  int32_t c = 0;
  for (; c + 16 * N <= d; c += 16 * N) value_tile<S, Q, N>(p, values + c, d, n, acc + c, acc_stride);
  for (; c < d; c += 16) value_tile<S, Q, 1>(p, values + c, d, n, acc + c, acc_stride);
}

// Turns scores [begin, end) into p = exp(s - max); {max, sum of p} to part.
template <class S>
void soften(float* scores, int32_t begin, int32_t end, float* part) {
  const int32_t first = begin / 16 * 16, last = (end + 15) / 16 * 16;
  for (int32_t j = first; j < begin; ++j) scores[j] = -__builtin_inff();
  for (int32_t j = end; j < last; ++j) scores[j] = -__builtin_inff();
  auto most = S::load(scores + first);
  for (int32_t j = first + 16; j < last; j += 16) most = S::max(most, S::load(scores + j));
  part[0] = S::max_lane(most);
  const auto top = S::set1(part[0]);
  auto sum = S::zero();
  for (int32_t j = first; j < last; j += 16) {
    const auto p = exp<S>(S::sub(S::load(scores + j), top));
    S::store(scores + j, p);
    sum = S::add(sum, p);
  }
  part[1] = S::sum(sum);
}

template <class S>
void score_keys(const AttentionCut& a, int32_t first, int32_t last) {  // keys of one tile, in a.tile
  constexpr int kMost = S::kTileRows >= 4 ? 4 : 1;
  const int32_t d = a.head_dim;
  for (int32_t row = 0; row < a.n_rows; ++row) {
    const int32_t begin = a.begin[row] > first ? a.begin[row] : first, end = a.end[row] < last ? a.end[row] : last;
    for (int32_t j = begin / 4 * 4; j < end; j += 4)
      for (int32_t h = 0; h < a.group;) {
        const int64_t i = int64_t{row} * a.group + h;
        const float* keys = a.tile + (j - first / kAttentionTile * kAttentionTile) * d;
        const int32_t left = a.group - h;
        if (kMost >= 4 && left >= 4) {
          score_tile<S, kMost>(a.q + i * d, keys, d, a.scale, a.scores + i * kCutKeys + j);
          h += 4;
        } else if (kMost >= 4 && left == 3) {
          score_tile<S, kMost >= 4 ? 3 : 1>(a.q + i * d, keys, d, a.scale, a.scores + i * kCutKeys + j);
          h += 3;
        } else {
          score_tile<S, 1>(a.q + i * d, keys, d, a.scale, a.scores + i * kCutKeys + j);
          h += 1;
        }
      }
  }
}

template <class S>
void weigh_values(const AttentionCut& a, int32_t first, int32_t last) {  // values of one tile, in a.tile
  const int32_t d = a.head_dim, stride = part_floats(d);
  for (int32_t row = 0; row < a.n_rows; ++row) {
    const int32_t begin = a.begin[row] > first ? a.begin[row] : first, end = a.end[row] < last ? a.end[row] : last;
    if (begin >= end) continue;
    const float* values = a.tile + (begin - first / kAttentionTile * kAttentionTile) * d;
    for (int32_t h = 0; h < a.group;) {
      const int64_t i = int64_t{row} * a.group + h;
      const float* p = a.scores + i * kCutKeys + begin;
      float* acc = a.parts + i * stride + kPartHead;
      const int32_t left = a.group - h;
      if (S::kTileRows >= 4 && left >= 4) {
        value_channels<S, S::kTileRows >= 4 ? 4 : 1>(p, values, d, end - begin, acc, stride);
        h += 4;
      } else if (S::kTileRows >= 4 && left == 3) {
        value_channels<S, S::kTileRows >= 4 ? 3 : 1>(p, values, d, end - begin, acc, stride);
        h += 3;
      } else if (left >= 2) {
        value_channels<S, 2>(p, values, d, end - begin, acc, stride);
        h += 2;
      } else {
        value_channels<S, 1>(p, values, d, end - begin, acc, stride);
        h += 1;
      }
    }
  }
}

template <class S>
void attention_cut(const AttentionCut& a) {
  int32_t begin = kCutKeys, end = 0;
  for (int32_t row = 0; row < a.n_rows; ++row) {
    if (a.begin[row] >= a.end[row]) continue;
    begin = a.begin[row] < begin ? a.begin[row] : begin;
    end = a.end[row] > end ? a.end[row] : end;
  }
  const int32_t d = a.head_dim;
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t from = begin / kAttentionTile * kAttentionTile; from < end; from += kAttentionTile) {
      const int32_t first = from > begin ? from : begin;
      const int32_t last = from + kAttentionTile < end ? from + kAttentionTile : end;
      for (int32_t j = first; j < last; ++j)
        widen_row<S>(pass == 0 ? a.key[j] : a.value[j], a.format, d, a.tile + (j - from) * d);
      if (pass == 0)
        score_keys<S>(a, first, last);
      else
        weigh_values<S>(a, first, last);
    }
    if (pass == 1) continue;
    for (int32_t i = 0; i < a.n_rows * a.group; ++i) {
      const int32_t row = i / a.group;
      if (a.begin[row] >= a.end[row]) continue;
      float* part = a.parts + int64_t{i} * part_floats(d);
      soften<S>(a.scores + int64_t{i} * kCutKeys, a.begin[row], a.end[row], part);
      for (int32_t c = 0; c < d; c += 16) S::store(part + kPartHead + c, S::zero());
    }
  }
}

template <class S>
void merge_parts(float* total, const float* part, int32_t d) {
  const float most = total[0] > part[0] ? total[0] : part[0];
  const auto a = exp<S>(S::set1(total[0] - most)), b = exp<S>(S::set1(part[0] - most));
  const auto sum = S::add(S::mul(S::set1(total[1]), a), S::mul(S::set1(part[1]), b));
  for (int32_t c = kPartHead; c < kPartHead + d; c += 16)
    S::store(total + c, S::add(S::mul(S::load(total + c), a), S::mul(S::load(part + c), b)));
  total[0] = most;
  S::store_n(total + 1, sum, 1);
}

template <class S>
void finish_part(const float* total, float* out, int32_t d) {
  const auto sum = S::set1(total[1]);
  for (int32_t c = 0; c < d; c += 16) S::store(out + c, S::div(S::load(total + kPartHead + c), sum));
}

template <class S>
constexpr AttentionKernels kAttentionKernels = {attention_cut<S>, merge_parts<S>, finish_part<S>};

}  // namespace gannet::simd
