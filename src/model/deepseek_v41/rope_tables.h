// Rotary frequencies of the two tables.
#pragma once

#include <vector>

#include "model/deepseek_v41/config.h"

namespace gannet::deepseek_v41 {

// f32 [rope_dim / 2]. `compressed`: the table of layers with ratio > 0, with YaRN where the config has it; else the
// plain one. Steps are rounded to fp32 as the released code does: theta^(2i/n), its inverse, the blend.
std::vector<float> rope_frequencies(const Config& config, bool compressed);

}  // namespace gannet::deepseek_v41
