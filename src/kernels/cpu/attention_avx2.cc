#include "kernels/cpu/attention_loops.h"
#include "kernels/cpu/simd_avx2.h"

namespace gannet {

constinit const AttentionKernels attention_kernels_avx2 = simd::kAttentionKernels<simd_avx2::Simd>;

}  // namespace gannet
