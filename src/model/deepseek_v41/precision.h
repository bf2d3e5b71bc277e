// What the three numeric modes mean for V4.1: types, cache formats, quantisers. docs/numerics.md has the table.
#pragma once

#include "kernels/kv_view.h"
#include "model/model.h"
#include "tensor/weight.h"

namespace gannet::deepseek_v41 {

struct Precision {
  Numerics numerics = Numerics::precise;

  bool exact() const { return numerics == Numerics::float32; }
  DType activation() const { return exact() ? DType::f32 : DType::bf16; }
  RowFormat window() const { return exact() ? RowFormat::f32 : RowFormat::fp8_ue8m0; }
  RowFormat compressed() const { return exact() ? RowFormat::f32 : RowFormat::fp4_e4m3; }
  RowFormat index_key() const { return exact() ? RowFormat::f32 : RowFormat::fp4_ue8m0; }
  bool round_p() const { return !exact(); }
  // Whether the input of a product with such a weight goes through fp8 first.
  bool quantizes_input(WeightFormat weight) const {
    return numerics == Numerics::reference &&
           (weight == WeightFormat::fp8_32x32 || weight == WeightFormat::mxfp4_1x32);
  }
};

}  // namespace gannet::deepseek_v41
