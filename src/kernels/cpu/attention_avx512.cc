#include "kernels/cpu/attention_loops.h"
#include "kernels/cpu/simd_avx512.h"

namespace gannet {

constinit const AttentionKernels attention_kernels_avx512 = simd::kAttentionKernels<simd_avx512::Simd>;

}  // namespace gannet
