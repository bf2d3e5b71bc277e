#include "kernels/moe_experts.h"

namespace gannet {

MoeExpertsPlan plan(const MoeExperts& op, const Machine& machine) {
  MoeExpertsPlan p;
  p.op = op;
  if (machine.device != nullptr) {
    p.whole = choose<MoeExperts, MoeExpertsArgs>(op, machine, {}, moe_experts_cuda());
    return p;
  }
  if (op.quantize_input) {
    p.quantize_x = plan(QuantizeRows{RowFormat::fp8_ue8m0, op.width, 1, op.x, op.x}, machine);
    p.quantize_a = plan(QuantizeRows{RowFormat::fp8_ue8m0, op.ffn, 1, op.x, op.x}, machine);
  }
  p.up = plan(Linear{op.format, op.ffn, op.width, 1, op.x, op.x}, machine);
  p.down = plan(Linear{op.format, op.width, op.ffn, 1, op.x, op.x}, machine);
  p.activation =
      plan(GatedActivation{Activation::silu, op.ffn, op.limit > 0 ? op.limit : 0.0f, op.x, op.x}, machine);
  return p;
}

int64_t moe_experts_workspace(const MoeExperts& op, int64_t n) {
  return n * (op.width + 3 * int64_t{op.ffn}) * dtype_bytes(op.x) + 4096;
}

void MoeExpertsPlan::operator()(const MoeExpertsArgs& args, Exec& exec) const {
  if (whole.variant != nullptr) return whole(args, exec);
  const Arena::Scope scope(exec.arena);
  View x = args.x;  // [N, C]
  if (op.quantize_input) {
    x = exec.arena.tensor(op.x, {args.x.dim(0), op.width});
    quantize_x({args.x, x}, exec);
  }
  for (size_t e = 0; e < args.experts.size(); ++e) {
    const int64_t begin = args.offset[e], n = args.offset[e + 1] - args.offset[e];
    if (n == 0) continue;
    const ExpertWeights& w = args.experts[e];
    const Arena::Scope expert_scope(exec.arena);
    const View gate = exec.arena.tensor(op.x, {n, op.ffn}), value = exec.arena.tensor(op.x, {n, op.ffn});
    up({x.rows(begin, n), w.w1, nullptr, gate}, exec);                                              // [n, F]
    up({x.rows(begin, n), w.w3, nullptr, value}, exec);                                             // [n, F]
    activation({gate, value, args.weight == nullptr ? nullptr : args.weight + begin, gate}, exec);  // [n, F]
    if (op.quantize_input) quantize_a({gate, gate}, exec);
    down({gate, w.w2, nullptr, args.out.rows(begin, n)}, exec);  // [n, C]
  }
}

}  // namespace gannet
