// What both sources of a Llama-class config share: checks and derived values.
#pragma once

#include <string_view>

#include "model/llama/config.h"

namespace gannet::llama {

constexpr int64_t kMaxDim = 1 << 20;
constexpr int64_t kMaxLayers = 1024;

// 0.1 ln(factor) + 1: what YaRN multiplies cos and sin by unless a file says otherwise.
double yarn_attention_factor(double factor);

// Every `period`-th layer sees everything, the others the window.
std::vector<bool> local_pattern(int32_t n_layers, int32_t period);

// Rules between fields. bad_file with field and value. Field names are those of config.json.
Status check_rules(const Config& config, std::string_view name);

}  // namespace gannet::llama
