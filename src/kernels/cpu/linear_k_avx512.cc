#include "kernels/cpu/linear_k_formats.h"
#include "kernels/cpu/linear_kernels.h"
#include "kernels/cpu/linear_tiles.h"
#include "kernels/cpu/simd_avx512.h"

namespace gannet {

LinearKernels linear_k_kernels_avx512(WeightFormat format);  // declared where it is called, linear_avx512.cc

LinearKernels linear_k_kernels_avx512(WeightFormat format) {
  using S = simd_avx512::Simd;
  switch (format) {
    case WeightFormat::q2_k:
      return simd::kernels_of<S, simd::Q2K<S>>();
    case WeightFormat::q3_k:
      return simd::kernels_of<S, simd::Q3K<S>>();
    case WeightFormat::q4_k:
      return simd::kernels_of<S, simd::Q45K<S, false>>();
    case WeightFormat::q5_k:
      return simd::kernels_of<S, simd::Q45K<S, true>>();
    case WeightFormat::q6_k:
      return simd::kernels_of<S, simd::Q6K<S>>();
    default:
      return {};
  }
}

}  // namespace gannet
