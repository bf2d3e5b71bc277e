#include "kernels/sparse_attention.h"

#include "kernels/row_io.h"

namespace gannet {

Planned<SparseAttention, SparseAttentionArgs> plan(const SparseAttention& op, const Machine& machine) {
  GANNET_CHECK(op.window >= 1 && op.heads >= 1 && op.width >= 1, "window {}, {} heads of {}", op.window, op.heads,
               op.width);
  GANNET_CHECK(is_activation(op.q) && is_activation(op.out), "activations are f32 or bf16");
  return choose<SparseAttention, SparseAttentionArgs>(op, machine,
                                                      {sparse_attention_cpu(), sparse_attention_ref()}, sparse_attention_cuda());
}

int64_t sparse_attention_workspace(const SparseAttention& op, int n_threads) {
  const int64_t keys = int64_t{op.window} + op.topk + 16;
  return n_threads * (keys * (op.width + 16) * 4 + int64_t{op.heads} * op.width * 8 + 4096);
}

}  // namespace gannet
