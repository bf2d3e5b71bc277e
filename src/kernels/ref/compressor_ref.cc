#include <algorithm>
#include <cmath>

#include "kernels/compressor.h"
#include "kernels/row_codec.h"
#include "kernels/row_io.h"
#include "kernels/tasks.h"

namespace gannet {
namespace {

void group_start(const GroupStart& op, const GroupStartArgs& args, Exec&) {
  for (int32_t t = 0; t < args.n; ++t) args.out[t] = args.row_pos[t] - args.row_pos[t] % op.ratio;
}

// One channel of one group: [kv | gate] rows of its tokens.
double pool(const float* const* rows, int32_t ratio, int32_t width, int32_t c) {
  double top = rows[0][width + c];
  for (int32_t i = 1; i < ratio; ++i) top = std::max(top, double{rows[i][width + c]});
  double sum = 0, weights = 0;
  for (int32_t i = 0; i < ratio; ++i) {
    const double w = std::exp(double{rows[i][width + c]} - top);
    weights += w;
    sum += w * double{rows[i][c]};
  }
  return sum / weights;
}

void pool_rows(const PoolRows& op, const PoolRowsArgs& args, Exec& exec) {
  const RecentRows& recent = args.recent;
  GANNET_CHECK(recent.step.format == RowFormat::f32 && recent.step.width == 2 * op.width, "rows of {} values",
               recent.step.width);
  const Arena::Scope scope(exec.arena);
  float* scratch = exec.arena.array<float>(int64_t{exec.pool.size()} * op.width);
  const float** groups = exec.arena.array<const float*>(int64_t{exec.pool.size()} * op.ratio);
  for_each_task(exec, args.out.dim(0), [&](int64_t t, int thread) {
    float* out = scratch + int64_t{thread} * op.width;
    const float** rows = groups + int64_t{thread} * op.ratio;
    std::fill_n(out, op.width, 0.0f);
    const int32_t pos = args.row_pos[t];
    if ((pos + 1) % op.ratio == 0) {
      for (int32_t i = 0; i < op.ratio; ++i)
        rows[i] = reinterpret_cast<const float*>(recent_row(recent, args.row_seq[t], pos + 1 - op.ratio + i).codes);
      for (int32_t c = 0; c < op.width; ++c) out[c] = static_cast<float>(pool(rows, op.ratio, op.width, c));
    }
    write_row(out, args.out, t, 0, op.width);
  });
}

void append(const AppendRows& op, const AppendRowsArgs& args, Exec& exec) {
  GANNET_CHECK(args.plane.width == op.width && args.plane.format == op.format && row_elements(args.x) == op.width,
               "plane of {} channels", args.plane.width);
  const Arena::Scope scope(exec.arena);
  float* scratch = exec.arena.array<float>(int64_t{exec.pool.size()} * op.width);
  for_each_task(exec, args.x.dim(0), [&](int64_t t, int thread) {
    if ((args.row_pos[t] + 1) % op.ratio != 0) return;
    float* values = scratch + int64_t{thread} * op.width;
    read_row(args.x, t, 0, op.width, values);
    const PagedRowBytes to = paged_row(args.plane, args.row_seq[t], args.row_pos[t] / op.ratio);
    encode_row(op.format, values, op.width, to.codes, to.scales);
  });
}

template <class Op>
bool always(const Op&, const Machine&) {
  return true;
}

constexpr Variant<GroupStart, GroupStartArgs> kStart[] = {{"ref", always<GroupStart>, group_start}};
constexpr Variant<PoolRows, PoolRowsArgs> kPool[] = {{"ref", always<PoolRows>, pool_rows}};
constexpr Variant<AppendRows, AppendRowsArgs> kAppend[] = {{"ref", always<AppendRows>, append}};

}  // namespace

std::span<const Variant<GroupStart, GroupStartArgs>> group_start_ref() { return kStart; }
std::span<const Variant<PoolRows, PoolRowsArgs>> pool_rows_ref() { return kPool; }
std::span<const Variant<AppendRows, AppendRowsArgs>> append_rows_ref() { return kAppend; }

}  // namespace gannet
