#include "kernels/index_select.h"

namespace gannet {

std::span<const IndexSelectVariant> index_select_cpu() { return {}; }

}  // namespace gannet
