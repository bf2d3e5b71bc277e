#include "kernels/args_check.h"
#include "kernels/kv_append.h"
#include "kernels/paged_row.h"

namespace gannet {
namespace {

void run(const KvAppend& op, const KvAppendArgs& args, Exec&) {
  check_kv_append(op, args);
  for (int64_t t = 0; t < args.x.dim(0); ++t) {
    std::byte* out = paged_row(args.plane, args.row_seq[t], args.row_pos[t]);
    for (int32_t i = 0; i < op.width; ++i) {
      const float value = load_element(row_at(args.x, t), op.x, i);
      if (op.format == RowFormat::f16)
        reinterpret_cast<f16*>(out)[i] = to_f16(value);
      else
        store_element(out, op.format == RowFormat::bf16 ? DType::bf16 : DType::f32, i, value);
    }
  }
}

constexpr KvAppendVariant kVariants[] = {{"ref", [](const KvAppend&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const KvAppendVariant> kv_append_ref() { return kVariants; }

}  // namespace gannet
