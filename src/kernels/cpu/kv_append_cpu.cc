#include "kernels/args_check.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/row_split.h"
#include "kernels/kv_append.h"
#include "kernels/paged_row.h"

namespace gannet {
namespace {

void run(const KvAppend& op, const KvAppendArgs& args, Exec& exec, const RowKernels& kernels) {
  check_kv_append(op, args);
  for_rows(exec, args.x.dim(0), op.width, [&](int64_t t) {
    std::byte* out = paged_row(args.plane, args.row_seq[t], args.row_pos[t]);
    const RowKernels::Row x{row_at(args.x, t), op.x == DType::bf16};
    if (op.format == RowFormat::f16)
      kernels.to_f16(x, reinterpret_cast<uint16_t*>(out), op.width);
    else
      kernels.scale(x, 1.0f, {out, op.format == RowFormat::bf16}, op.width);
  });
}

constexpr KvAppendVariant kVariants[] = {
    {"avx512", [](const KvAppend&, const Machine& machine) { return machine.cpu.avx512; },
     [](const KvAppend& op, const KvAppendArgs& args, Exec& exec) { run(op, args, exec, row_kernels_avx512); }},
    {"avx2", [](const KvAppend&, const Machine& machine) { return machine.cpu.avx2; },
     [](const KvAppend& op, const KvAppendArgs& args, Exec& exec) { run(op, args, exec, row_kernels_avx2); }},
};

}  // namespace

std::span<const KvAppendVariant> kv_append_cpu() { return kVariants; }

}  // namespace gannet
