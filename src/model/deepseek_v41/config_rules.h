// Defaults that depend on other fields, and the validity rules of a V4.1 config.
#pragma once

#include <string_view>
#include <vector>

#include "model/deepseek_v41/config.h"

namespace gannet::deepseek_v41 {

constexpr int64_t kMaxEngramPrimes = 4096;  // bounds the prime search for hostile configs

// The released schedule for 40 layers, [0, 0] + 18 x 2 + 20 x 1; else [0] * min(2, L), then as many 2 as 1 (one
// more 2 where odd).
std::vector<int32_t> default_ratios(int32_t n_layers);
// [2, 8, 14, 20] for the released schedule, else the first layer of each run of one ratio > 0.
std::vector<int32_t> default_kv_sources(const Config& config);
// The released list where the kv sources are the released ones, else the kv sources.
std::vector<int32_t> default_index_sources(const Config& config);

// Every rule between fields. bad_file or unsupported, with field and value.
Status check_rules(const Config& config, std::string_view name);

}  // namespace gannet::deepseek_v41
