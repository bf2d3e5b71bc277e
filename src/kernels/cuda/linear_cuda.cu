#include "kernels/cuda/linear_cuda.h"

namespace gannet {

std::span<const LinearVariant> linear_cuda() {
  static constexpr LinearVariant kVariants[] = {{"mma", cuda::linear_mma_fits, cuda::linear_mma},
                                                {"lanes", cuda::linear_lanes_fits, cuda::linear_lanes}};
  return kVariants;
}

}  // namespace gannet
