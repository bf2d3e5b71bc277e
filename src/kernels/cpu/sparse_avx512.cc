#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/sparse_loops.h"

namespace gannet {

constinit const SparseKernels sparse_kernels_avx512 = simd::kSparseKernels<simd_avx512::Simd>;

}  // namespace gannet
