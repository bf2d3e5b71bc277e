#include "kernels/cpu/row_loops.h"
#include "kernels/cpu/simd_avx2.h"

namespace gannet {

constinit const RowKernels row_kernels_avx2 = simd::kRowKernels<simd_avx2::Simd>;

}  // namespace gannet
