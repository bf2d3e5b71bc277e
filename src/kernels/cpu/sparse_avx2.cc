#include "kernels/cpu/simd_avx2.h"
#include "kernels/cpu/sparse_loops.h"

namespace gannet {

constinit const SparseKernels sparse_kernels_avx2 = simd::kSparseKernels<simd_avx2::Simd>;

}  // namespace gannet
