#include "kernels/attention_gqa.h"

#include "kernels/args_check.h"

namespace gannet {

void check_attention_gqa(const AttentionGqa& op, const AttentionGqaArgs& args) {
  check_heads(args.q, args.q.dim(0), op.heads, op.head_dim, op.q);
  check_heads(args.out, args.q.dim(0), op.heads, op.head_dim, op.out);
  for (const PagedRows& plane : {args.key, args.value})
    GANNET_CHECK(plane.width == op.kv_heads * op.head_dim && plane.format == op.format && plane.rows_per_block > 0,
                 "plane of width {}, format {}", plane.width, static_cast<int>(plane.format));
  for (int64_t t = 0; t < args.q.dim(0); ++t)
    GANNET_CHECK(args.row_pos[t] >= 0 && args.row_pos[t] <= args.max_pos, "position {} of at most {}",
                 args.row_pos[t], args.max_pos);
}

Planned<AttentionGqa, AttentionGqaArgs> plan(const AttentionGqa& op, const Machine& machine) {
  GANNET_CHECK(op.kv_heads > 0 && op.heads % op.kv_heads == 0 && op.head_dim > 0, "{} heads over {} of {} channels",
               op.heads, op.kv_heads, op.head_dim);
  GANNET_CHECK(op.format == RowFormat::f32 || op.format == RowFormat::f16 || op.format == RowFormat::bf16,
               "format {}", static_cast<int>(op.format));
  return choose<AttentionGqa, AttentionGqaArgs>(op, machine, {attention_gqa_cpu(), attention_gqa_ref()}, attention_gqa_cuda());
}

}  // namespace gannet
