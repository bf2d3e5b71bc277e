// Loops behind sparse_kernels.h over the 16-lane `Simd` of an instruction set: the same operations, so the same
// bits.
#pragma once

#include "kernels/cpu/simd_math.h"
#include "kernels/cpu/sparse_kernels.h"

namespace gannet::simd {

constexpr int32_t kHeads = 4;  // queries that share a pass over the keys

// Exact: 2^(b - 127) by bits, subnormal for 0.
template <class S>
float power_of_two(uint8_t b) {
  const uint32_t bits = b == 0 ? 0x00400000u : uint32_t{b} << 23;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return b == 255 ? __builtin_nanf("") : value;
}

template <class S>
float e4m3_value(uint8_t code) {
  uint8_t codes[16] = {code};
  float values[16];
  S::store(values, S::from_e4m3(codes));
  return values[0];
}

template <class S>
void decode(RowFormat format, const std::byte* codes, const std::byte* scales, int32_t width, float* out) {
  const auto* code = reinterpret_cast<const uint8_t*>(codes);
  const auto* scale = reinterpret_cast<const uint8_t*>(scales);
  switch (format) {
    case RowFormat::fp8_ue8m0:
      for (int32_t c = 0; c < width; c += 16)
        S::store(out + c, S::mul(S::from_e4m3(code + c), S::set1(power_of_two<S>(scale[c / 32]))));
      return;
    case RowFormat::fp4_ue8m0:
      for (int32_t c = 0; c < width; c += 16)
        S::store(out + c, S::mul(S::e2m1(S::nibble_pairs(code + c / 2)), S::set1(power_of_two<S>(scale[c / 32]))));
      return;
    case RowFormat::fp4_e4m3:
      for (int32_t c = 0; c < width; c += 16)
        S::store(out + c, S::mul(S::e2m1(S::nibble_pairs(code + c / 2)), S::set1(e4m3_value<S>(scale[c / 16]))));
      return;
    default:  // f32: the caller asks for no other
      __builtin_memcpy(out, codes, static_cast<size_t>(width) * sizeof(float));
  }
}

// Dot products of up to four queries with one key, in lane order; missing ones repeat the first.
template <class S>
void dot4(const float* const q[kHeads], const float* key, int32_t width, float out[kHeads]) {
  typename S::F a = S::zero(), b = S::zero(), c = S::zero(), d = S::zero();
  for (int32_t i = 0; i < width; i += 16) {
    const auto k = S::load(key + i);
    a = S::fma(S::load(q[0] + i), k, a);
    b = S::fma(S::load(q[1] + i), k, b);
    c = S::fma(S::load(q[2] + i), k, c);
    d = S::fma(S::load(q[3] + i), k, d);
  }
  const auto sums = S::sum4(a, b, c, d);
  __builtin_memcpy(out, &sums, sizeof sums);
}

// Scores [n] to P' [n] in place. Returns the denominator.
template <class S>
float softmax(float* p, int32_t n, float sink, bool round_p) {
  auto tops = S::set1(p[0]);
  for (int32_t j = 0; j + 16 <= n; j += 16) tops = S::max(S::load(p + j), tops);
  float top = S::max_lane(tops);
  for (int32_t j = n - n % 16; j < n; ++j) top = p[j] > top ? p[j] : top;
  const auto shift = S::set1(top);
  auto sums = S::zero();
  for (int32_t j = 0; j < n; j += 16) {
    const int lanes = n - j < 16 ? n - j : 16;
    auto e = exp<S>(S::sub(S::load_n(p + j, lanes), shift));
    float part[16];
    S::store(part, e);
    sums = S::add(sums, S::load_n(part, lanes));
    if (round_p) {
      uint16_t rounded[16];
      S::to_bf16_n(rounded, e, 16);
      e = S::from_bf16(rounded);
    }
    S::store_n(p + j, e, lanes);
  }
  float last[16];
  S::store(last, exp<S>(S::set1(sink - top)));
  return S::sum(sums) + last[0];
}

// out[h] += P'[h][j] keys[j] by rising j, for four heads, 16 channels at a time.
template <class S>
void weigh4(const float* p, int64_t p_stride, const float* keys, int32_t n, int32_t width, const float den[kHeads],
            int32_t heads, float* out) {
  for (int32_t c = 0; c < width; c += 16) {
    typename S::F acc[kHeads] = {S::zero(), S::zero(), S::zero(), S::zero()};
    const float* key = keys + c;
    for (int32_t j = 0; j < n; ++j, key += width) {
      const auto k = S::load(key);
      acc[0] = S::fma(S::set1(p[j]), k, acc[0]);
      acc[1] = S::fma(S::set1(p[p_stride + j]), k, acc[1]);
      acc[2] = S::fma(S::set1(p[2 * p_stride + j]), k, acc[2]);
      acc[3] = S::fma(S::set1(p[3 * p_stride + j]), k, acc[3]);
    }
    for (int32_t h = 0; h < heads; ++h) S::store(out + int64_t{h} * width + c, S::div(acc[h], S::set1(den[h])));
  }
}

template <class S>
void attend(const float* q, int32_t heads, const float* keys, int32_t n, int32_t width, float scale,
            const float* sink, bool round_p, float* p, float* out) {
  const int64_t stride = (int64_t{n} + 15) / 16 * 16;
  for (int32_t first = 0; first < heads; first += kHeads) {
    const int32_t some = heads - first < kHeads ? heads - first : kHeads;
    const float* queries[kHeads];
    for (int32_t h = 0; h < kHeads; ++h) queries[h] = q + int64_t{first + (h < some ? h : 0)} * width;
    for (int32_t j = 0; j < n; ++j) {
      float dots[kHeads];
      dot4<S>(queries, keys + int64_t{j} * width, width, dots);
      for (int32_t h = 0; h < kHeads; ++h) p[h * stride + j] = dots[h] * scale;
    }
    float den[kHeads];
    for (int32_t h = 0; h < kHeads; ++h)
      den[h] = softmax<S>(p + h * stride, n, sink[first + (h < some ? h : 0)], round_p);
    weigh4<S>(p, stride, keys, n, width, den, some, out + int64_t{first} * width);
  }
}

template <class S>
void score(const float* query, const float* weight, int32_t heads, const float* keys, int32_t n, int32_t width,
           float* dots, float* scores) {
  for (int32_t j = 0; j < n; ++j) {
    const float* key = keys + int64_t{j} * width;
    for (int32_t first = 0; first < heads; first += kHeads) {
      const float* queries[kHeads];
      for (int32_t h = 0; h < kHeads; ++h)
        queries[h] = query + int64_t{first + h < heads ? first + h : first} * width;
      dot4<S>(queries, key, width, dots + first);
    }
    auto sum = S::zero();
    for (int32_t h = 0; h < heads; h += 16) {
      const int lanes = heads - h < 16 ? heads - h : 16;
      sum = S::fma(S::load_n(weight + h, lanes), S::max(S::load_n(dots + h, lanes), S::zero()), sum);
    }
    scores[j] = S::sum(sum);
  }
}

template <class S>
inline constexpr SparseKernels kSparseKernels = {decode<S>, attend<S>, score<S>};

}  // namespace gannet::simd
