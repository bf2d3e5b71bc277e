#include "kernels/decoder_order.h"

namespace gannet {
namespace {

void run(const DecoderOrder& op, const DecoderOrderArgs& args, Exec&) {
  int32_t at = 0;
  for (int32_t level = op.n_layers - 1; level >= op.first_layer - 2; --level) {
    for (int32_t t = 0; t < args.n_rows; ++t)
      if (last_layer(op, args.row_pos[t], args.seq_end[args.row_seq[t]]) == level) args.order[at++] = t;
    if (level >= op.first_layer - 1) {
      const int32_t want = args.count[static_cast<size_t>(level - op.first_layer) + 1];
      GANNET_CHECK(at == want, "{} rows reach layer {}, the plan says {}", at, level, want);
    }
  }
}

constexpr Variant<DecoderOrder, DecoderOrderArgs> kVariants[] = {
    {"ref", [](const DecoderOrder&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const Variant<DecoderOrder, DecoderOrderArgs>> decoder_order_ref() { return kVariants; }

}  // namespace gannet
