// A build without CUDA: no op has a variant for a device.
#include "kernels/add.h"
#include "kernels/attention_gqa.h"
#include "kernels/embedding.h"
#include "kernels/gated_activation.h"
#include "kernels/kv_append.h"
#include "kernels/linear.h"
#include "kernels/moe_experts.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/row_gather.h"
#include "kernels/sparse_attention.h"

namespace gannet {

std::span<const AddVariant> add_cuda() { return {}; }
std::span<const AttentionGqaVariant> attention_gqa_cuda() { return {}; }
std::span<const EmbeddingVariant> embedding_cuda() { return {}; }
std::span<const GatedActivationVariant> gated_activation_cuda() { return {}; }
std::span<const KvAppendVariant> kv_append_cuda() { return {}; }
std::span<const LinearVariant> linear_cuda() { return {}; }
std::span<const RmsNormVariant> rms_norm_cuda() { return {}; }
std::span<const RopeVariant> rope_cuda() { return {}; }
std::span<const RowGatherVariant> row_gather_cuda() { return {}; }
std::span<const MoeExpertsVariant> moe_experts_cuda() { return {}; }
std::span<const SparseAttentionVariant> sparse_attention_cuda() { return {}; }

void rope_table_cuda(const int32_t*, int32_t, const float*, int32_t, float*, Exec&) {
  GANNET_CHECK(false, "this build has no devices");
}

}  // namespace gannet
