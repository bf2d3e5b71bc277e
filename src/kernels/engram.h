// Engram: table rows found by hashes of the last token ids, gated into the residual streams.
//
// EngramIds     id of each row of the step: token_map[row_token], or -1 (dead) where row_flags has `dead_flag`.
// Written
//               as i32 StepRows of width 1, with tags.
// EngramHash    t_i = id at row_pos - i, or `pad` once a term is dead or before position 0 (and for all older
// ones);
//               R_1 = t_0 m_0 ^ t_1 m_1, R_i = R_(i-1) ^ t_i m_i;  column c = (i - 1) * heads + e:
//               row[t, c] = R_i mod prime[c] + offset[c]        64-bit, i = 1 .. max_ngram - 1
// EngramGather  out[t] = the table's rows row_ids[t, 0 .. n_columns), one behind the other
// EngramGate    kv [n, (S + 1) C]: S keys, then one value.  Per stream s, in fp32:
//               dot = sum_c h[s][c] (q[s][c] k[s][c]) key[s][c] * (mean(h[s]^2) + eps)^-1/2 (mean(key[s]^2) +
//               eps)^-1/2
//                     * C^-1/2;  g = sigmoid(copysign(sqrt(max(|dot|, 1e-6)), dot)), 0 for a dead row
//               h[s] = round( h[s] + g * value )
//
//   ids   RecentRows i32, width 1       row_ids i64 [T, n_columns]
//   h     f32 or bf16 [n, S, C]         kv, out: h's type
//   row_index i32 [n] or nullptr        row of `row_ids` of each row of `out` (nullptr: the same)
//
// Error    EngramIds, EngramHash, EngramGather exact. EngramGate within half an ulp of h's type plus 2^-20 |g
// value|. Refuses  at plan time: a max_ngram outside 2 .. 16. Aborts on a row id outside the table, a bug of the
// caller. Source   DeepSeek-V4.1 Engram.
#pragma once

#include "kernels/variant.h"
#include "kernels/window.h"
#include "tensor/weight.h"

namespace gannet {

struct EngramIds {
  int32_t n_tokens = 0;  // size of the map
};
struct EngramIdsArgs {
  const int32_t* token_map = nullptr;
  const int32_t* row_token = nullptr;
  const int32_t* row_pos = nullptr;
  const uint8_t* row_flags = nullptr;
  uint8_t dead_flag = 0;
  StepRows ids;  // out
};

struct EngramHash {
  int32_t max_ngram = 4, heads = 8;
  int32_t pad = 0;  // compressed id
};
struct EngramHashArgs {
  RecentRows ids;
  const int32_t* row_seq = nullptr;
  const int32_t* row_pos = nullptr;
  int32_t n_rows = 0;
  const uint64_t* multiplier = nullptr;  // [max_ngram]
  const uint64_t* prime = nullptr;       // [n_columns]
  const uint64_t* offset = nullptr;      // [n_columns]
  int64_t* row_ids = nullptr;            // out
};

struct EngramGather {
  int32_t columns = 0, width = 0;  // rows fetched per token, channels of one
  WeightFormat format = WeightFormat::fp8_1x32;
  DType out = DType::bf16;
};
struct EngramGatherArgs {
  WeightView table;
  const int64_t* row_ids = nullptr;
  const int32_t* row_index = nullptr;
  View out;  // [n, columns * width]
};

struct EngramGate {
  int32_t streams = 4, width = 0;  // S, C
  float eps = 1e-20f;
  DType h = DType::bf16;
};
struct EngramGateArgs {
  View kv;
  const float* q = nullptr;  // [S, C]
  const float* k = nullptr;  // [S, C]
  const uint8_t* row_flags = nullptr;
  uint8_t dead_flag = 0;
  View h;  // in and out
};

std::span<const Variant<EngramIds, EngramIdsArgs>> engram_ids_ref();
std::span<const Variant<EngramHash, EngramHashArgs>> engram_hash_ref();
std::span<const Variant<EngramGather, EngramGatherArgs>> engram_gather_ref();
std::span<const Variant<EngramGate, EngramGateArgs>> engram_gate_ref();

Planned<EngramIds, EngramIdsArgs> plan(const EngramIds& op, const Machine& machine);
Planned<EngramHash, EngramHashArgs> plan(const EngramHash& op, const Machine& machine);
Planned<EngramGather, EngramGatherArgs> plan(const EngramGather& op, const Machine& machine);
Planned<EngramGate, EngramGateArgs> plan(const EngramGate& op, const Machine& machine);

}  // namespace gannet
