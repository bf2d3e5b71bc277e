// Rotary position embedding, in place, on `rotary` channels of each head starting at channel `begin`.
//
//   x    f32 or bf16 [T, H, d]   rows and heads may be strided
//   pos  i32 [T]
//   frequency  f32 [rotary / 2]
//   angle = fl32( float(pos) * frequency[i] ): the fp32 product is the definition, cos and sin of it are
//   fp32-accurate interleaved: the pair is channels (2i, 2i+1);  half-split: (i, i + rotary/2) (a, b) -> (a cos - b
//   sin, a sin + b cos); inverse: angle negated
//
// cos and sin: computed in double from the fp32 angle and rounded once, the same on every variant. A model that
// rotates in many layers computes them once a step with rope_table() and passes `table`; the bits are the same. Sum
// a*cos and b*sin are rounded, then subtracted: no fused multiply-add. Source Su et al. 2021; V4.1 rotates the last
// 64 channels, interleaved.
#pragma once

#include "kernels/variant.h"

namespace gannet {

struct Rope {
  int32_t heads = 1, head_dim = 0;
  int32_t begin = 0, rotary = 0;
  bool interleaved = true, inverse = false;
  DType x = DType::f32;
};

struct RopeArgs {
  View x;
  const int32_t* pos = nullptr;
  const float* frequency = nullptr;
  const float* table =
      nullptr;  // [T, rotary / 2, 2] from rope_table(), then pos and frequency are not read; or nullptr
};

// table[t, i] = {cos, sin} of fl32(float(pos[t]) * frequency[i]); frequency has n_pairs entries.
void rope_table(const int32_t* pos, int32_t n_rows, const float* frequency, int32_t n_pairs, float* table,
                Exec& exec);

void rope_table_cuda(const int32_t* pos, int32_t n_rows, const float* frequency, int32_t n_pairs, float* table,
                     Exec& exec);

// Aborts unless the arguments have the shapes and types of `op`. Every variant begins with it.
void check_rope(const Rope& op, const RopeArgs& args);

using RopeVariant = Variant<Rope, RopeArgs>;
std::span<const RopeVariant> rope_cpu();
std::span<const RopeVariant> rope_cuda();
std::span<const RopeVariant> rope_ref();
Planned<Rope, RopeArgs> plan(const Rope& op, const Machine& machine);

}  // namespace gannet
