#include <algorithm>

#include "kernels/compressor.h"
#include "kernels/cpu/sparse_kernels.h"
#include "kernels/row_io.h"
#include "kernels/sparse_attention.h"
#include "kernels/tasks.h"

namespace gannet {
namespace {

// The keys of row t in order, decoded to [n, D]. Returns n.
int32_t gather_keys(const SparseKernels& kernels, const SparseAttention& op, const SparseAttentionArgs& args,
                    int64_t t, float* keys) {
  const int32_t seq = args.row_seq[t], pos = args.row_pos[t];
  int32_t n = 0;
  for (int32_t p = std::max(0, pos - op.window + 1); p <= pos; ++p, ++n) {
    const RowBytes from = recent_row(args.recent, seq, p);
    kernels.decode(args.recent.step.format, from.codes, from.scales, op.width, keys + int64_t{n} * op.width);
  }
  for (int32_t i = 0; args.selected != nullptr && i < args.n_selected[t]; ++i, ++n) {
    const PagedRowBytes from = paged_row(args.rows, seq, args.selected[t * op.topk + i]);
    kernels.decode(args.rows.format, from.codes, from.scales, op.width, keys + int64_t{n} * op.width);
  }
  return n;
}

// Tasks are rows, and parts of the heads where there are fewer rows than threads: no head's bits depend on that.
void run(const SparseKernels& kernels, const SparseAttention& op, const SparseAttentionArgs& args, Exec& exec) {
  const Arena::Scope scope(exec.arena);
  const int64_t T = args.q.dim(0), D = op.width, threads = exec.pool.size();
  const int64_t max_keys = (int64_t{op.window} + op.topk + 15) / 16 * 16;
  const int64_t parts =
      T >= threads ? 1 : std::min<int64_t>((threads + T - 1) / std::max<int64_t>(T, 1), (op.heads + 3) / 4);
  const int64_t part_heads = ((op.heads + parts - 1) / parts + 3) / 4 * 4;
  float* all_keys = exec.arena.array<float>(threads * max_keys * D);
  float* all_p = exec.arena.array<float>(threads * max_keys * 4);
  float* all_q = exec.arena.array<float>(threads * 2 * part_heads * D);
  for_each_task(exec, T * parts, [&](int64_t task, int thread) {
    const int64_t t = task / parts, first = task % parts * part_heads;
    const int64_t heads = std::min<int64_t>(part_heads, op.heads - first);
    if (heads <= 0) return;
    float* keys = all_keys + thread * max_keys * D;
    float* q = all_q + thread * 2 * part_heads * D;
    float* out = q + part_heads * D;
    const int32_t n = gather_keys(kernels, op, args, t, keys);
    read_row(args.q, t, first * D, heads * D, q);
    kernels.attend(q, static_cast<int32_t>(heads), keys, n, op.width, op.scale, args.sink + first, op.round_p,
                   all_p + thread * max_keys * 4, out);
    write_row(out, args.out, t, first * D, heads * D);
  });
}

template <bool kAvx512>
bool fits(const SparseAttention& op, const Machine& machine) {
  return has_sparse_kernels(machine, op.width) && (!kAvx512 || machine.cpu.avx512);
}
template <bool kAvx512>
void run_with(const SparseAttention& op, const SparseAttentionArgs& args, Exec& exec) {
  run(sparse_kernels(kAvx512), op, args, exec);
}

constexpr SparseAttentionVariant kVariants[] = {{"avx512", fits<true>, run_with<true>},
                                                {"avx2", fits<false>, run_with<false>}};

}  // namespace

std::span<const SparseAttentionVariant> sparse_attention_cpu() { return kVariants; }

}  // namespace gannet
