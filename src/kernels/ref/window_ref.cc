#include <algorithm>
#include <cstring>

#include "kernels/row_codec.h"
#include "kernels/row_io.h"
#include "kernels/tasks.h"
#include "kernels/window.h"

namespace gannet {
namespace {

void write_rows(const WriteStepRows& op, const WriteStepRowsArgs& args, Exec& exec) {
  const StepRows& rows = args.rows;
  GANNET_CHECK(rows.width == op.width && rows.format == op.format && row_elements(args.x) == op.width,
               "rows of {} channels", op.width);
  const Arena::Scope scope(exec.arena);
  float* scratch = exec.arena.array<float>(int64_t{exec.pool.size()} * op.width);
  for_each_task(exec, args.x.dim(0), [&](int64_t t, int thread) {
    const int64_t row = args.row_index == nullptr ? t : args.row_index[t];
    GANNET_CHECK(row >= 0 && row < rows.n, "row {} of {}", row, rows.n);
    float* values = scratch + int64_t{thread} * op.width;
    read_row(args.x, t, 0, op.width, values);
    encode_row(op.format, values, op.width, rows.codes + row * row_code_bytes(op.format, op.width),
               rows.scales + row * row_scale_bytes(op.format, op.width));
    rows.tags[row] = args.row_pos[t];
  });
}

void clear_tags(const ClearTags&, const ClearTagsArgs& args, Exec&) {
  std::fill_n(args.rows.tags, args.rows.n, -1);
}

void commit(const CommitRing& op, const CommitRingArgs& args, Exec&) {
  const RingRows& ring = args.ring;
  GANNET_CHECK(ring.width == op.width && ring.format == op.format, "ring of {} channels", ring.width);
  const int64_t code_bytes = row_code_bytes(op.format, op.width),
                scale_bytes = row_scale_bytes(op.format, op.width);
  for (int64_t row = 0; row < args.rows.n; ++row) {
    const int32_t pos = args.rows.tags[row], seq = args.row_seq[row];
    const int32_t last = args.seq_first_pos[seq] + args.seq_n_rows[seq] - 1;
    if (pos < 0 || pos <= last - ring.capacity) continue;
    std::byte* base = ring.base + ring.ring_slot[seq] * ring.ring_bytes;
    const int64_t slot = pos % ring.capacity;
    reinterpret_cast<int32_t*>(base + ring.tags_offset)[slot] = pos;
    std::memcpy(base + ring.codes_offset + slot * code_bytes, args.rows.codes + row * code_bytes,
                static_cast<size_t>(code_bytes));
    std::memcpy(base + ring.scales_offset + slot * scale_bytes, args.rows.scales + row * scale_bytes,
                static_cast<size_t>(scale_bytes));
  }
}

template <class Op>
bool always(const Op&, const Machine&) {
  return true;
}

constexpr Variant<WriteStepRows, WriteStepRowsArgs> kWrite[] = {{"ref", always<WriteStepRows>, write_rows}};
constexpr Variant<ClearTags, ClearTagsArgs> kClear[] = {{"ref", always<ClearTags>, clear_tags}};
constexpr Variant<CommitRing, CommitRingArgs> kCommit[] = {{"ref", always<CommitRing>, commit}};

}  // namespace

std::span<const Variant<WriteStepRows, WriteStepRowsArgs>> write_step_rows_ref() { return kWrite; }
std::span<const Variant<ClearTags, ClearTagsArgs>> clear_tags_ref() { return kClear; }
std::span<const Variant<CommitRing, CommitRingArgs>> commit_ring_ref() { return kCommit; }

}  // namespace gannet
