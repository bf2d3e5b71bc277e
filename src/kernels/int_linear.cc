#include "kernels/int_linear.h"

#include "kernels/args_check.h"

namespace gannet {

bool int_linear_takes(WeightFormat format) {
  switch (format) {
    case WeightFormat::q4_0:
    case WeightFormat::q4_1:
    case WeightFormat::q5_0:
    case WeightFormat::q5_1:
    case WeightFormat::q8_0:
    case WeightFormat::q4_k:
    case WeightFormat::q5_k:
    case WeightFormat::q6_k:
    case WeightFormat::mxfp4_gguf:
      return true;
    default:
      return false;
  }
}

void check_int_linear(const IntLinear& op, const IntLinearArgs& args) {
  GANNET_CHECK(args.x.width == op.in, "width {}, asked {}", args.x.width, op.in);
  for (int i = 0; i < op.n_parts; ++i) {
    const WeightView& w = args.part[i].weight;
    check_matrix(args.part[i].y, args.x.n_rows, op.part[i].out, DType::f32);
    GANNET_CHECK(w.format == op.part[i].format && w.out == op.part[i].out && w.in == op.in,
                 "weight [{}, {}] of format {}", w.out, w.in, static_cast<int>(w.format));
  }
}

Planned<IntLinear, IntLinearArgs> plan(const IntLinear& op, const Machine& machine) {
  GANNET_CHECK(op.n_parts > 0 && op.n_parts <= kIntParts && op.in >= 0, "{} parts of {} columns", op.n_parts,
               op.in);
  for (int i = 0; i < op.n_parts; ++i) {
    const WeightFormatInfo& info = weight_format_info(op.part[i].format);
    GANNET_CHECK(int_linear_takes(op.part[i].format), "format {} has no integer product",
                 static_cast<int>(op.part[i].format));
    GANNET_CHECK(op.in % info.block_elements == 0 && op.part[i].out >= 0, "{} columns cut a block of {}", op.in,
                 info.block_elements);
  }
  return choose<IntLinear, IntLinearArgs>(op, machine, {int_linear_cpu(), int_linear_ref()});
}

}  // namespace gannet
