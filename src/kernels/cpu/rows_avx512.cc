#include "kernels/cpu/row_loops.h"
#include "kernels/cpu/simd_avx512.h"

namespace gannet {

constinit const RowKernels row_kernels_avx512 = simd::kRowKernels<simd_avx512::Simd>;

}  // namespace gannet
