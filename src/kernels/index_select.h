// The indexer: scores every visible compressed row for a query token and selects the best, exactly.
//
//   query     f32 or bf16 [T, H, w]   already through the key's quantiser
//   weight    f32 or bf16 [T, H]      may be negative; times `weight_scale`
//   keys      PagedRows, width w: row j is visible to a query at position p iff j < (p + 1) / ratio
//   selected  i32 [T, topk]           out: rows in rising order; n_selected i32 [T] of them
//   score(t, j) = sum_h (weight[t, h] * weight_scale) * max(0, query[t, h] . key[j])
//
// Selection  the min(topk, n) eligible rows of highest score; ties to the lower row, -0 equal to +0. Where no more
//            than topk rows are eligible all are taken and nothing is scored.
// Candidates (two-level selection) blocks of `block_size` consecutive rows:
//   publish   also writes the best `max_blocks` blocks by their best visible score, ties to the lower block; the
//   block
//             of the newest visible row is always among them: candidates i32 [T, max_blocks], rising, n_candidates
//             i32 [T]. The layer's own selection is made from all visible rows.
//   restrict  only visible rows of the blocks in `candidates` are eligible.
//
// Sum      each query . key in 16 fp32 lanes as in linear.h; weight * relu in 16 lanes (head h in lane h % 16, by
// rising
//          head, one fused multiply-add each), then the tree of linear.h. ref: double.
// Error    |score - exact| <= ((w + H) / 16 + 10) 2^-24 sum_h |weight_h| sum_c |q_c k_c|; two rows nearer than that
// may swap. Refuses  at plan time: topk < 1; a role without block_size and max_blocks. Source   DeepSeek-V4.1
// sparse attention; scores in fp32 (the released code uses bf16 and so has more ties).
#pragma once

#include "kernels/kv_view.h"
#include "kernels/variant.h"

namespace gannet {

enum class CandidateRole : uint8_t { none, publish, restrict_to };

struct IndexSelect {
  int32_t heads = 0, width = 0;  // H, w
  int32_t topk = 0, ratio = 1;
  float weight_scale = 1;
  CandidateRole role = CandidateRole::none;
  int32_t block_size = 0, max_blocks = 0;
  DType query = DType::bf16, weight = DType::bf16;
  RowFormat keys = RowFormat::fp4_ue8m0;
};

struct IndexSelectArgs {
  View query, weight;
  PagedRows keys;
  const int32_t* row_seq = nullptr;
  const int32_t* row_pos = nullptr;
  int32_t max_pos = 0;  // no row has a larger position: sizes the workspace
  int32_t* selected = nullptr;
  int32_t* n_selected = nullptr;
  int32_t* candidates = nullptr;  // written by publish, read by restrict_to
  int32_t* n_candidates = nullptr;
};

using IndexSelectVariant = Variant<IndexSelect, IndexSelectArgs>;
std::span<const IndexSelectVariant> index_select_cpu();
std::span<const IndexSelectVariant> index_select_ref();
Planned<IndexSelect, IndexSelectArgs> plan(const IndexSelect& op, const Machine& machine);

// Workspace bytes of any variant for positions up to max_pos and a pool of n_threads.
int64_t index_select_workspace(const IndexSelect& op, int32_t max_pos, int n_threads);

// ---- the choice itself, shared by the variants on the CPU
// ---------------------------------------------------------

// Scores of rows [begin, begin + n) of sequence `seq` for row t of the query.
struct ScoreRows {
  virtual void operator()(int64_t t, int32_t seq, int32_t begin, int32_t n, float* scores) = 0;

 protected:
  ~ScoreRows() = default;
};
// Scratch of one thread.
struct SelectScratch {
  float* scores = nullptr;   // [rows visible at max_pos]
  uint64_t* keys = nullptr;  // [rows visible at max_pos]
};
void select_row(const IndexSelect& op, const IndexSelectArgs& args, int64_t t, ScoreRows& score,
                SelectScratch scratch);

}  // namespace gannet
