#include "kernels/window.h"

#include "kernels/row_io.h"

namespace gannet {

StepRows make_step_rows(Arena& arena, int32_t n, int32_t width, RowFormat format) {
  StepRows rows;
  rows.codes = arena.allocate(int64_t{n} * row_code_bytes(format, width));
  rows.scales = arena.allocate(int64_t{n} * row_scale_bytes(format, width));
  rows.tags = arena.array<int32_t>(n);
  rows.n = n;
  rows.width = width;
  rows.format = format;
  return rows;
}

RowBytes recent_row(const RecentRows& rows, int32_t seq, int32_t pos) {
  const int32_t code_bytes = row_code_bytes(rows.ring.format, rows.ring.width);
  const int32_t scale_bytes = row_scale_bytes(rows.ring.format, rows.ring.width);
  if (pos >= rows.seq_first_pos[seq]) {
    const int64_t row = int64_t{rows.seq_first_row[seq]} + pos - rows.seq_first_pos[seq];
    GANNET_CHECK(row < rows.step.n && rows.step.tags[row] == pos, "position {}: row {} of the step holds {}", pos,
                 row, rows.step.tags[row]);
    return {rows.step.codes + row * code_bytes, rows.step.scales + row * scale_bytes};
  }
  const std::byte* ring = rows.ring.base + rows.ring.ring_slot[seq] * rows.ring.ring_bytes;
  const int32_t slot = pos % rows.ring.capacity;
  const int32_t tag = reinterpret_cast<const int32_t*>(ring + rows.ring.tags_offset)[slot];
  GANNET_CHECK(tag == pos, "position {}: ring slot {} holds {}", pos, slot, tag);
  return {ring + rows.ring.codes_offset + int64_t{slot} * code_bytes,
          ring + rows.ring.scales_offset + int64_t{slot} * scale_bytes};
}

Planned<WriteStepRows, WriteStepRowsArgs> plan(const WriteStepRows& op, const Machine& machine) {
  GANNET_CHECK(is_activation(op.x), "activations are f32 or bf16");
  return choose<WriteStepRows, WriteStepRowsArgs>(op, machine, {write_step_rows_ref()});
}
Planned<ClearTags, ClearTagsArgs> plan(const ClearTags& op, const Machine& machine) {
  return choose<ClearTags, ClearTagsArgs>(op, machine, {clear_tags_ref()});
}
Planned<CommitRing, CommitRingArgs> plan(const CommitRing& op, const Machine& machine) {
  return choose<CommitRing, CommitRingArgs>(op, machine, {commit_ring_ref()});
}

}  // namespace gannet
