#include <algorithm>
#include <cmath>

#include "kernels/compressor.h"
#include "kernels/row_codec.h"
#include "kernels/row_io.h"
#include "kernels/sparse_attention.h"
#include "kernels/tasks.h"

namespace gannet {
namespace {

// The keys of row t in order, decoded to [n, D]. Returns n.
int32_t gather_keys(const SparseAttention& op, const SparseAttentionArgs& args, int64_t t, float* keys) {
  const int32_t seq = args.row_seq[t], pos = args.row_pos[t];
  int32_t n = 0;
  for (int32_t p = std::max(0, pos - op.window + 1); p <= pos; ++p, ++n) {
    const RowBytes from = recent_row(args.recent, seq, p);
    decode_row(args.recent.step.format, from.codes, from.scales, op.width, keys + int64_t{n} * op.width);
  }
  for (int32_t i = 0; args.selected != nullptr && i < args.n_selected[t]; ++i, ++n) {
    const PagedRowBytes from = paged_row(args.rows, seq, args.selected[t * op.topk + i]);
    decode_row(args.rows.format, from.codes, from.scales, op.width, keys + int64_t{n} * op.width);
  }
  return n;
}

void attend(const SparseAttention& op, const float* q, const float* keys, int32_t n, float sink, double* p,
            float* out) {
  double top = -HUGE_VAL;
  for (int32_t j = 0; j < n; ++j) {
    double dot = 0;
    for (int32_t c = 0; c < op.width; ++c) dot += double{q[c]} * double{keys[int64_t{j} * op.width + c]};
    p[j] = dot * double{op.scale};
    top = std::max(top, p[j]);
  }
  double den = std::exp(double{sink} - top);
  for (int32_t j = 0; j < n; ++j) {
    p[j] = std::exp(p[j] - top);
    den += p[j];
    if (op.round_p) p[j] = double{round_bf16(static_cast<float>(p[j]))};
  }
  for (int32_t c = 0; c < op.width; ++c) {
    double sum = 0;
    for (int32_t j = 0; j < n; ++j) sum += p[j] * double{keys[int64_t{j} * op.width + c]};
    out[c] = static_cast<float>(sum / den);
  }
}

void run(const SparseAttention& op, const SparseAttentionArgs& args, Exec& exec) {
  const Arena::Scope scope(exec.arena);
  const int64_t max_keys = int64_t{op.window} + op.topk;
  auto* all_keys = exec.arena.array<float>(exec.pool.size() * max_keys * op.width);
  auto* all_p = exec.arena.array<double>(exec.pool.size() * max_keys);
  auto* all_q = exec.arena.array<float>(exec.pool.size() * int64_t{2} * op.width);
  for_each_task(exec, args.q.dim(0), [&](int64_t t, int thread) {
    float* keys = all_keys + thread * max_keys * op.width;
    float* q = all_q + int64_t{thread} * 2 * op.width;
    float* out = q + op.width;
    const int32_t n = gather_keys(op, args, t, keys);
    for (int64_t h = 0; h < op.heads; ++h) {
      read_row(args.q, t, h * op.width, op.width, q);
      attend(op, q, keys, n, args.sink[h], all_p + thread * max_keys, out);
      write_row(out, args.out, t, h * op.width, op.width);
    }
  });
}

constexpr SparseAttentionVariant kVariants[] = {
    {"ref", [](const SparseAttention&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const SparseAttentionVariant> sparse_attention_ref() { return kVariants; }

}  // namespace gannet
