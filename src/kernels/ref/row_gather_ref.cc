#include "kernels/args_check.h"
#include "kernels/row_gather.h"

namespace gannet {
namespace {

void run(const RowGather& op, const RowGatherArgs& args, Exec&) {
  const int64_t bytes = check_row_gather(op, args);
  for (size_t i = 0; i < args.index.size(); ++i) {
    const int64_t at = args.index[i], row = static_cast<int64_t>(i);
    const std::byte* from = row_at(args.x, op.scatter ? row : at);
    std::byte* to = row_at(args.out, op.scatter ? at : row);
    for (int64_t b = 0; b < bytes; ++b) to[b] = from[b];
  }
}

constexpr RowGatherVariant kVariants[] = {{"ref", [](const RowGather&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const RowGatherVariant> row_gather_ref() { return kVariants; }

}  // namespace gannet
