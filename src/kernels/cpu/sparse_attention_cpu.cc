#include "kernels/sparse_attention.h"

namespace gannet {

std::span<const SparseAttentionVariant> sparse_attention_cpu() { return {}; }

}  // namespace gannet
