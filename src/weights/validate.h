// A checkpoint against the weights its config asks for, from headers alone.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/spec.h"

namespace gannet::weights {

struct PartTotal {
  int64_t tensors = 0;     // scales count as tensors of their own; a stack of experts counts once for each expert
  int64_t parameters = 0;  // scales do not count
  int64_t bytes = 0;       // codes and scales, as stored
};

struct Validation {
  std::array<PartTotal, kParts> parts{};
  PartTotal total;
  int64_t n_problems = 0;
  std::vector<std::string> problems;  // the first of them, a sentence each

  bool ok() const { return n_problems == 0; }
};

// Every spec must be there with its shape, in the type of its Stored form (`exact_types`) or in any weight format;
// and every tensor of the checkpoint must belong to a spec or to `ignored` (prefixes of canonical names).
Validation validate(const Checkpoint& checkpoint, std::span<const WeightSpec> specs, bool exact_types,
                    std::span<const std::string_view> ignored);

}  // namespace gannet::weights
