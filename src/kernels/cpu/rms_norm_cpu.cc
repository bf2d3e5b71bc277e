#include "kernels/args_check.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/row_split.h"
#include "kernels/rms_norm.h"

namespace gannet {
namespace {

void run(const RmsNorm& op, const RmsNormArgs& args, Exec& exec, const RowKernels& kernels) {
  check_rms_norm(op, args);
  const bool split = args.x.rank == 3;
  const int64_t heads = split ? args.x.dim(1) : 1;
  for_rows(exec, args.x.dim(0) * heads, op.width, [&](int64_t i) {
    const std::byte* x = split ? head_at(args.x, i / heads, i % heads) : row_at(args.x, i);
    std::byte* out = split ? head_at(args.out, i / heads, i % heads) : row_at(args.out, i);
    kernels.rms_norm({x, op.x == DType::bf16}, args.weight, op.weight_offset, op.eps, {out, op.out == DType::bf16},
                     op.width);
  });
}

constexpr RmsNormVariant kVariants[] = {
    {"avx512", [](const RmsNorm&, const Machine& machine) { return machine.cpu.avx512; },
     [](const RmsNorm& op, const RmsNormArgs& args, Exec& exec) { run(op, args, exec, row_kernels_avx512); }},
    {"avx2", [](const RmsNorm&, const Machine& machine) { return machine.cpu.avx2; },
     [](const RmsNorm& op, const RmsNormArgs& args, Exec& exec) { run(op, args, exec, row_kernels_avx2); }},
};

}  // namespace

std::span<const RmsNormVariant> rms_norm_cpu() { return kVariants; }

}  // namespace gannet
