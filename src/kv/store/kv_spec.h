// What a model keeps for each sequence, as data: planes of paged rows and rings of recent rows. From it the store
// derives the byte layout of a block and of a ring slot, the same on every device, on disk and on the wire.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kv_view.h"

namespace gannet::kv {

struct PlaneSpec {
  std::string name;            // "layers.2.compressed", "layers.0.k"
  int32_t tokens_per_row = 1;  // 2 for a plane that holds one row per two tokens
  int32_t width = 0;
  RowFormat format = RowFormat::f32;
};

struct RingSpec {
  std::string name;  // "layers.0.window", "layers.2.pending", "engram.ids"
  int32_t capacity = 0;
  int32_t width = 0;
  RowFormat format = RowFormat::f32;
};

struct KvSpec {
  int32_t block_tokens = 0;  // a multiple of every tokens_per_row
  std::vector<PlaneSpec> planes;
  std::vector<RingSpec> rings;
};

}  // namespace gannet::kv
