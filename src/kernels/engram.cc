#include "kernels/engram.h"

#include "kernels/row_io.h"

namespace gannet {

Planned<EngramIds, EngramIdsArgs> plan(const EngramIds& op, const Machine& machine) {
  return choose<EngramIds, EngramIdsArgs>(op, machine, {engram_ids_ref()});
}
Planned<EngramHash, EngramHashArgs> plan(const EngramHash& op, const Machine& machine) {
  GANNET_CHECK(op.max_ngram >= 2 && op.max_ngram <= 16 && op.heads >= 1, "n-grams up to {}", op.max_ngram);
  return choose<EngramHash, EngramHashArgs>(op, machine, {engram_hash_ref()});
}
Planned<EngramGather, EngramGatherArgs> plan(const EngramGather& op, const Machine& machine) {
  GANNET_CHECK(op.columns >= 1 && op.width >= 1 && is_activation(op.out), "{} rows of {}", op.columns, op.width);
  return choose<EngramGather, EngramGatherArgs>(op, machine, {engram_gather_ref()});
}
Planned<EngramGate, EngramGateArgs> plan(const EngramGate& op, const Machine& machine) {
  GANNET_CHECK(op.streams >= 1 && op.width >= 1 && is_activation(op.h), "{} streams of {}", op.streams, op.width);
  return choose<EngramGate, EngramGateArgs>(op, machine, {engram_gate_ref()});
}

}  // namespace gannet
