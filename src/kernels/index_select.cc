#include "kernels/index_select.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "kernels/row_io.h"

namespace gannet {

Planned<IndexSelect, IndexSelectArgs> plan(const IndexSelect& op, const Machine& machine) {
  GANNET_CHECK(op.topk >= 1 && op.ratio >= 1 && op.heads >= 1, "top {}, ratio {}", op.topk, op.ratio);
  GANNET_CHECK(op.role == CandidateRole::none || (op.block_size >= 1 && op.max_blocks >= 1),
               "blocks of {}, {} of them", op.block_size, op.max_blocks);
  GANNET_CHECK(is_activation(op.query) && is_activation(op.weight), "activations are f32 or bf16");
  return choose<IndexSelect, IndexSelectArgs>(op, machine, {index_select_cpu(), index_select_ref()});
}

int64_t index_select_workspace(const IndexSelect& op, int32_t max_pos, int n_threads) {
  const int64_t rows = (int64_t{max_pos} + 1) / op.ratio + 64;
  return n_threads * (rows * 12 + int64_t{op.heads} * (op.width + 4) * 4 + int64_t{op.width} * 16 * 4 + 4096);
}

namespace {

// Larger for a higher score, then for a lower index; -0 and +0 are one score.
uint64_t sort_key(float score, int32_t index) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  const uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | (0xFFFFFFFFu - static_cast<uint32_t>(index));
}

// The `k` largest of `n` keys as their indices, rising. Keys are distinct.
int32_t take_best(uint64_t* keys, int32_t n, int32_t k, int32_t* out) {
  k = std::min(k, n);
  if (k < n) std::nth_element(keys, keys + k, keys + n, std::greater<>());
  for (int32_t i = 0; i < k; ++i) out[i] = static_cast<int32_t>(0xFFFFFFFFu - static_cast<uint32_t>(keys[i]));
  std::sort(out, out + k);
  return k;
}

int32_t publish_blocks(const IndexSelect& op, const float* scores, int32_t n, uint64_t* keys, int32_t* out) {
  const int32_t n_blocks = (n + op.block_size - 1) / op.block_size;
  for (int32_t b = 0; b < n_blocks; ++b) {
    const int32_t end = std::min(n, (b + 1) * op.block_size);
    const float best = b == n_blocks - 1 ? std::numeric_limits<float>::infinity()
                                         : *std::max_element(scores + int64_t{b} * op.block_size, scores + end);
    keys[b] = sort_key(best, b);
  }
  return take_best(keys, n_blocks, op.max_blocks, out);
}

int32_t all_rows(int32_t n, int32_t* out) {
  for (int32_t j = 0; j < n; ++j) out[j] = j;
  return n;
}

int32_t select_restricted(const IndexSelect& op, const IndexSelectArgs& args, int64_t t, int32_t n,
                          ScoreRows& score, SelectScratch scratch, int32_t* out) {
  const int32_t* blocks = args.candidates + t * op.max_blocks;
  const int32_t n_blocks = args.n_candidates[t];
  int32_t eligible = 0;
  for (int32_t b = 0; b < n_blocks; ++b) eligible += std::min(op.block_size, n - blocks[b] * op.block_size);
  if (eligible <= op.topk) {
    int32_t k = 0;
    for (int32_t b = 0; b < n_blocks; ++b)
      for (int32_t j = blocks[b] * op.block_size; j < std::min(n, (blocks[b] + 1) * op.block_size); ++j)
        out[k++] = j;
    return k;
  }
  int32_t at = 0;
  for (int32_t b = 0; b < n_blocks; ++b) {
    const int32_t begin = blocks[b] * op.block_size, rows = std::min(op.block_size, n - begin);
    score(t, args.row_seq[t], begin, rows, scratch.scores);
    for (int32_t i = 0; i < rows; ++i) scratch.keys[at++] = sort_key(scratch.scores[i], begin + i);
  }
  return take_best(scratch.keys, eligible, op.topk, out);
}

}  // namespace

void select_row(const IndexSelect& op, const IndexSelectArgs& args, int64_t t, ScoreRows& score,
                SelectScratch scratch) {
  const int32_t n = (args.row_pos[t] + 1) / op.ratio;
  int32_t* out = args.selected + t * op.topk;
  if (op.role == CandidateRole::restrict_to) {
    args.n_selected[t] = select_restricted(op, args, t, n, score, scratch, out);
    return;
  }
  const bool publish = op.role == CandidateRole::publish;
  const int32_t n_blocks = publish ? (n + op.block_size - 1) / op.block_size : 0;
  const bool every_block = n_blocks <= op.max_blocks;
  if (publish && every_block) args.n_candidates[t] = all_rows(n_blocks, args.candidates + t * op.max_blocks);
  if (n <= op.topk && every_block) {
    args.n_selected[t] = all_rows(n, out);
    return;
  }
  score(t, args.row_seq[t], 0, n, scratch.scores);
  if (publish && !every_block)
    args.n_candidates[t] = publish_blocks(op, scratch.scores, n, scratch.keys, args.candidates + t * op.max_blocks);
  for (int32_t j = 0; j < n; ++j) scratch.keys[j] = sort_key(scratch.scores[j], j);
  args.n_selected[t] = take_best(scratch.keys, n, op.topk, out);
}

}  // namespace gannet
