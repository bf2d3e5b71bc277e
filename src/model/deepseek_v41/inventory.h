// Every weight of a V4.1 checkpoint, under its released name, with shape, storage and part.
#pragma once

#include <vector>

#include "model/deepseek_v41/config.h"
#include "weights/spec.h"

namespace gannet::deepseek_v41 {

// What to leave out, for synthetic weights and for ranks that hold a share.
struct InventoryOptions {
  int32_t first_layer = 0, n_layers = -1;  // backbone layers; -1: to the end
  int32_t first_expert = 0,
          n_experts = -1;  // routed experts of each backbone layer and draft stage; -1: to the end
  bool engram_tables = true;
  bool draft = true;
  bool vision = true;
};

// Storage follows config.quant: the released formats, or BF16 and F32 without it.
std::vector<weights::WeightSpec> inventory(const Config& config, const InventoryOptions& options = {});

}  // namespace gannet::deepseek_v41
