#include "kernels/args_check.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/row_split.h"
#include "kernels/gated_activation.h"

namespace gannet {
namespace {

void run(const GatedActivation& op, const GatedActivationArgs& args, Exec& exec, const RowKernels& kernels) {
  check_gated_activation(op, args);
  const bool x_bf16 = op.x == DType::bf16, scaled = args.row_scale != nullptr;
  for_rows(exec, args.gate.dim(0), op.width * 4, [&](int64_t t) {  // an exponential costs a few other operations
    kernels.gated({row_at(args.gate, t), x_bf16}, {row_at(args.up, t), x_bf16},
                  op.activation == Activation::gelu_tanh, op.limit, scaled ? args.row_scale[t] : 1.0f, scaled,
                  {row_at(args.out, t), op.out == DType::bf16}, op.width);
  });
}

constexpr GatedActivationVariant kVariants[] = {
    {"avx512", [](const GatedActivation&, const Machine& machine) { return machine.cpu.avx512; },
     [](const GatedActivation& op, const GatedActivationArgs& args, Exec& exec) {
       run(op, args, exec, row_kernels_avx512);
     }},
    {"avx2", [](const GatedActivation&, const Machine& machine) { return machine.cpu.avx2; },
     [](const GatedActivation& op, const GatedActivationArgs& args, Exec& exec) {
       run(op, args, exec, row_kernels_avx2);
     }},
};

}  // namespace

std::span<const GatedActivationVariant> gated_activation_cpu() { return kVariants; }

}  // namespace gannet
