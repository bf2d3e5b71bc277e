// Where ops read a weight: as it lies in its file on the CPU, copied into device memory for a device.
#pragma once

#include <vector>

#include "runtime/exec.h"
#include "tensor/weight.h"

namespace gannet::weights {

// The weight itself, or its copy in the memory of `machine.device`, rows on 16 bytes; the copy lives as long as the
// device. Device memory that runs out is a planning bug and aborts: see device_bytes().
WeightView resident(const WeightView& weight, const Machine& machine);
const float* device_copy(const std::vector<float>& values,
                         const Machine& machine);  // nullptr on the CPU, or of none

// What resident() takes of a device's memory.
int64_t device_bytes(const WeightView& weight);

}  // namespace gannet::weights
