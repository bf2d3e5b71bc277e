#include <algorithm>
#include <vector>

#include "kernels/args_check.h"
#include "kernels/attention_gqa.h"
#include "kernels/paged_row.h"

namespace gannet {
namespace {

double element(const PagedRows& plane, int32_t seq, int32_t row, int32_t i) {
  const std::byte* at = paged_row(plane, seq, row);
  if (plane.format == RowFormat::f16) return to_f32(reinterpret_cast<const f16*>(at)[i]);
  return load_element(at, plane.format == RowFormat::bf16 ? DType::bf16 : DType::f32, i);
}

// Three passes over the keys, everything in double.
void attend(const AttentionGqa& op, const AttentionGqaArgs& args, int64_t t, int32_t head, double* scores) {
  const int32_t seq = args.row_seq[t], last = args.row_pos[t];
  const int32_t first = op.window > 0 ? std::max(0, last - op.window + 1) : 0;
  const int32_t channel = head / (op.heads / op.kv_heads) * op.head_dim;
  const std::byte* q = head_at(args.q, t, head);
  double most = -INFINITY, sum = 0;
  for (int32_t j = first; j <= last; ++j) {
    double dot = 0;
    for (int32_t i = 0; i < op.head_dim; ++i)
      dot += double{load_element(q, op.q, i)} * element(args.key, seq, j, channel + i);
    scores[j - first] = dot * double{op.scale};
    most = std::max(most, scores[j - first]);
  }
  for (int32_t j = first; j <= last; ++j) sum += scores[j - first] = std::exp(scores[j - first] - most);
  for (int32_t i = 0; i < op.head_dim; ++i) {
    double acc = 0;
    for (int32_t j = first; j <= last; ++j) acc += scores[j - first] * element(args.value, seq, j, channel + i);
    store_element(head_at(args.out, t, head), op.out, i, static_cast<float>(acc / sum));
  }
}

void run(const AttentionGqa& op, const AttentionGqaArgs& args, Exec& exec) {
  check_attention_gqa(op, args);
  const Arena::Scope scope(exec.arena);
  const int64_t stride = int64_t{args.max_pos} + 1;
  double* scores = exec.arena.array<double>(stride * exec.pool.size());
  exec.pool.parallel_chunks(args.q.dim(0) * op.heads, 1, [&](int thread, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      attend(op, args, i / op.heads, static_cast<int32_t>(i % op.heads), scores + thread * stride);
  });
}

constexpr AttentionGqaVariant kVariants[] = {
    {"ref", [](const AttentionGqa&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const AttentionGqaVariant> attention_gqa_ref() { return kVariants; }

}  // namespace gannet
