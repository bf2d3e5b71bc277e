// Element by element: out = round( a + b ), the sum in fp32.
//
//   a, b  f32 or bf16 [T, C], each of its own type; rows may be strided
//   out   f32 or bf16 [T, C]   may be a or b itself
//
// Error  exact up to the rounding of the fp32 sum and of out's type.
#pragma once

#include "kernels/variant.h"

namespace gannet {

struct Add {
  int32_t width = 0;
  DType a = DType::f32, b = DType::f32, out = DType::f32;
};

struct AddArgs {
  View a, b, out;
};

// Aborts unless the arguments have the shapes and types of `op`. Every variant begins with it.
void check_add(const Add& op, const AddArgs& args);

using AddVariant = Variant<Add, AddArgs>;
std::span<const AddVariant> add_cpu();
std::span<const AddVariant> add_cuda();
std::span<const AddVariant> add_ref();
Planned<Add, AddArgs> plan(const Add& op, const Machine& machine);

}  // namespace gannet
