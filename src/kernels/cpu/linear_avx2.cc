#include "kernels/cpu/linear_kernels.h"
#include "kernels/cpu/linear_tiles.h"
#include "kernels/cpu/simd_avx2.h"

namespace gannet {

LinearKernels linear_k_kernels_avx2(WeightFormat format);  // linear_k_avx2.cc

LinearKernels linear_kernels_avx2(WeightFormat format) {
  using S = simd_avx2::Simd;
  switch (format) {
    case WeightFormat::none:
      return {};
    case WeightFormat::f32:
      return simd::kernels_of<S, simd::DenseF32<S>>();
    case WeightFormat::f16:
      return simd::kernels_of<S, simd::Dense16<S, true>>();
    case WeightFormat::bf16:
      return simd::kernels_of<S, simd::Dense16<S, false>>();
    case WeightFormat::fp8_32x32:
    case WeightFormat::fp8_1x32:
      return simd::kernels_of<S, simd::Fp8<S>>();
    case WeightFormat::mxfp4_1x32:
      return simd::kernels_of<S, simd::Mxfp4<S>>();
    case WeightFormat::mxfp4_gguf:
      return simd::kernels_of<S, simd::Mxfp4Gguf<S>>();
    case WeightFormat::q4_0:
      return simd::kernels_of<S, simd::Q4_0<S>>();
    case WeightFormat::q4_1:
      return simd::kernels_of<S, simd::Q4_1<S>>();
    case WeightFormat::q5_0:
      return simd::kernels_of<S, simd::Q5<S, false>>();
    case WeightFormat::q5_1:
      return simd::kernels_of<S, simd::Q5<S, true>>();
    case WeightFormat::q8_0:
      return simd::kernels_of<S, simd::Q8_0<S>>();
    default:
      return linear_k_kernels_avx2(format);
  }
}

}  // namespace gannet
