// Recent rows by position: those of the step at hand, and the ring that keeps the last ones of earlier steps.
//
// A reader that wants position p of sequence s takes it from the step's own rows if p >= seq_first_pos[s], else
// from the ring. So a step may have more rows than the ring holds, and the ring is written behind all its readers.
//
// StepRows       cache rows of one step, by row index in the step; tag[i] is the position, or -1: row i was not
// written WriteStepRows  rows through encode_row() into StepRows, at row_index[t] (nullptr: t); all tags must have
// been cleared ClearTags      every tag to -1 CommitRing     copies the rows that were written and that still fit
// behind the last row of their sequence to ring
//                slot p % capacity, with the tag; at most `capacity` rows a sequence
//
//   x            f32 or bf16 [T, W]; rows may be strided
//   row_seq      i32 [T]    row_pos  i32 [T]: of the rows in x (WriteStepRows) or of all rows of the step
//   (CommitRing)
//
// Bits   codes as row_codec.h says; a row read from the step and read from the ring is the same.
// Source the sliding window of DeepSeek-V4.1, the pending rows of its compressors, the look-back of its Engram.
#pragma once

#include "kernels/kv_view.h"
#include "kernels/variant.h"

namespace gannet {

struct StepRows {
  std::byte* codes = nullptr;
  std::byte* scales = nullptr;
  int32_t* tags = nullptr;  // [n]
  int32_t n = 0;
  int32_t width = 0;
  RowFormat format = RowFormat::f32;
};
// Memory for n rows, tags not yet cleared.
StepRows make_step_rows(Arena& arena, int32_t n, int32_t width, RowFormat format);

// Where rows of earlier steps and of this one are: what every reader of recent rows takes.
struct RecentRows {
  StepRows step;
  RingRows ring;
  const int32_t* seq_first_row = nullptr;  // [n_seqs]
  const int32_t* seq_first_pos = nullptr;  // [n_seqs]
};
// Codes and scales of one row; aborts when it is in neither place, which is a bug.
struct RowBytes {
  const std::byte* codes = nullptr;
  const std::byte* scales = nullptr;
};
RowBytes recent_row(const RecentRows& rows, int32_t seq, int32_t pos);

struct WriteStepRows {
  int32_t width = 0;
  RowFormat format = RowFormat::fp8_ue8m0;
  DType x = DType::bf16;
};
struct WriteStepRowsArgs {
  View x;
  const int32_t* row_index = nullptr;
  const int32_t* row_pos = nullptr;
  StepRows rows;
};

struct ClearTags {};
struct ClearTagsArgs {
  StepRows rows;
};

struct CommitRing {
  int32_t width = 0;
  RowFormat format = RowFormat::fp8_ue8m0;
};
struct CommitRingArgs {
  StepRows rows;
  const int32_t* row_seq = nullptr;        // [rows.n]
  const int32_t* seq_first_pos = nullptr;  // [n_seqs]
  const int32_t* seq_n_rows = nullptr;     // [n_seqs]
  RingRows ring;
};

std::span<const Variant<WriteStepRows, WriteStepRowsArgs>> write_step_rows_ref();
std::span<const Variant<ClearTags, ClearTagsArgs>> clear_tags_ref();
std::span<const Variant<CommitRing, CommitRingArgs>> commit_ring_ref();

Planned<WriteStepRows, WriteStepRowsArgs> plan(const WriteStepRows& op, const Machine& machine);
Planned<ClearTags, ClearTagsArgs> plan(const ClearTags& op, const Machine& machine);
Planned<CommitRing, CommitRingArgs> plan(const CommitRing& op, const Machine& machine);

}  // namespace gannet
