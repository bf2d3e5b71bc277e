// Whether the scales of a weight are numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "tensor/weight.h"

namespace gannet::weights {

// The first row with a scale that is NaN (e8m0 code 255) or, in GGUF blocks, not finite; for fp8_32x32 the first
// row of its block. Nothing when all are numbers. Reads every scale, and nothing else of the weight where scales
// lie apart.
std::optional<int64_t> first_bad_scale_row(const WeightView& weight);

}  // namespace gannet::weights
