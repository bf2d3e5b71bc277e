#include "kernels/add.h"
#include "kernels/args_check.h"

namespace gannet {
namespace {

void run(const Add& op, const AddArgs& args, Exec&) {
  check_add(op, args);
  for (int64_t t = 0; t < args.a.dim(0); ++t)
    for (int32_t i = 0; i < op.width; ++i)
      store_element(row_at(args.out, t), op.out, i,
                    load_element(row_at(args.a, t), op.a, i) + load_element(row_at(args.b, t), op.b, i));
}

constexpr AddVariant kVariants[] = {{"ref", [](const Add&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const AddVariant> add_ref() { return kVariants; }

}  // namespace gannet
