#include "kernels/add.h"
#include "kernels/args_check.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/row_split.h"

namespace gannet {
namespace {

void run(const Add& op, const AddArgs& args, Exec& exec, const RowKernels& kernels) {
  check_add(op, args);
  for_rows(exec, args.a.dim(0), op.width, [&](int64_t t) {
    kernels.add({row_at(args.a, t), op.a == DType::bf16}, {row_at(args.b, t), op.b == DType::bf16},
                {row_at(args.out, t), op.out == DType::bf16}, op.width);
  });
}

constexpr AddVariant kVariants[] = {
    {"avx512", [](const Add&, const Machine& machine) { return machine.cpu.avx512; },
     [](const Add& op, const AddArgs& args, Exec& exec) { run(op, args, exec, row_kernels_avx512); }},
    {"avx2", [](const Add&, const Machine& machine) { return machine.cpu.avx2; },
     [](const Add& op, const AddArgs& args, Exec& exec) { run(op, args, exec, row_kernels_avx2); }},
};

}  // namespace

std::span<const AddVariant> add_cpu() { return kVariants; }

}  // namespace gannet
