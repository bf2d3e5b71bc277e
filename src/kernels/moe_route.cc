#include "kernels/moe_route.h"

namespace gannet {

Planned<MoeRoute, MoeRouteArgs> plan(const MoeRoute& op, const Machine& machine) {
  GANNET_CHECK(op.chosen >= 1 && op.chosen <= op.experts, "{} of {} experts", op.chosen, op.experts);
  return choose<MoeRoute, MoeRouteArgs>(op, machine, {moe_route_ref()});
}

}  // namespace gannet
