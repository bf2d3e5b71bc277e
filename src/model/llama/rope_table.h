// Rotary frequencies of one kind of layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/rope.h"
#include "model/llama/config.h"

namespace gannet::llama {

// f32 [head_dim / 2], computed in double and rounded once: theta^(-2i/head_dim), scaled as `rope` says (config.h
// has the rules), then divided by `divisors` (GGUF's rope_freqs.weight) where there are any. Source: linear: Chen
// et al. 2023; llama3: Llama 3.1's published rule; yarn: Peng et al. 2023, section 3.
std::vector<float> rope_frequencies(const Rope& rope, int32_t head_dim, std::span<const double> divisors);

}  // namespace gannet::llama
