// The inner loops of `attention_gqa` for one instruction set, on plain pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_view.h"

namespace gannet {

constexpr int32_t kCutKeys = 256;       // keys are cut at multiples of this position
constexpr int32_t kAttentionTile = 32;  // rows of keys or values widened to fp32 at once

// The result of one query over some keys: {max score, sum of p, 14 unused, acc[D]}, acc = sum of p * value.
constexpr int32_t kPartHead = 16;
constexpr int32_t part_floats(int32_t head_dim) { return kPartHead + head_dim; }

// Queries of some rows, all heads of one kv head, against one cut of the keys. Query i belongs to row i / group.
struct AttentionCut {
  const float* q = nullptr;  // [n_rows * group, D]
  int32_t n_rows = 0, group = 0, head_dim = 0;
  const int32_t* begin = nullptr;  // [n_rows] keys [begin, end) of the cut, in [0, 256]; begin >= end: none
  const int32_t* end = nullptr;
  const std::byte* const* key = nullptr;  // [256] the D channels of each key, where some row wants it
  const std::byte* const* value = nullptr;
  RowFormat format = RowFormat::f32;
  float scale = 1;
  float* scores = nullptr;  // [n_rows * group, 256] scratch
  float* tile = nullptr;    // [kAttentionTile, D] scratch
  float* parts = nullptr;   // [n_rows * group, part_floats(D)] out, where a row has keys
};

struct AttentionKernels {
  void (*cut)(const AttentionCut& cut);
  void (*merge)(float* total, const float* part, int32_t head_dim);  // part follows total in key order
  void (*finish)(const float* total, float* out, int32_t head_dim);  // acc / sum of p
};

extern const AttentionKernels attention_kernels_avx2, attention_kernels_avx512;

}  // namespace gannet
