#include <cstring>

#include "kernels/args_check.h"
#include "kernels/cpu/row_split.h"
#include "kernels/row_gather.h"

namespace gannet {
namespace {

void run(const RowGather& op, const RowGatherArgs& args, Exec& exec) {
  const int64_t bytes = check_row_gather(op, args);
  for_rows(exec, static_cast<int64_t>(args.index.size()), bytes / 4, [&](int64_t i) {
    const int64_t at = args.index[static_cast<size_t>(i)];
    std::memcpy(row_at(args.out, op.scatter ? at : i), row_at(args.x, op.scatter ? i : at),
                static_cast<size_t>(bytes));
  });
}

constexpr RowGatherVariant kVariants[] = {{"copy", [](const RowGather&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const RowGatherVariant> row_gather_cpu() { return kVariants; }

}  // namespace gannet
