// Every weight of a Llama-class checkpoint under its canonical (transformers) name, with shape and part.
#pragma once

#include <vector>

#include "model/llama/config.h"
#include "weights/spec.h"

namespace gannet::llama {

// Storage is BF16; files may hold any weight format.
std::vector<weights::WeightSpec> inventory(const Config& config);

}  // namespace gannet::llama
