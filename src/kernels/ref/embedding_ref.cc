#include <algorithm>

#include "kernels/args_check.h"
#include "kernels/embedding.h"

namespace gannet {
namespace {

void run(const Embedding& op, const EmbeddingArgs& args, Exec&) {
  check_embedding(op, args);
  constexpr int32_t kPiece = 256;  // a multiple of every block
  float w[kPiece];
  for (int64_t t = 0; t < args.out.dim(0); ++t) {
    std::byte* out = row_at(args.out, t);
    const int64_t embed = args.row_embed != nullptr ? args.row_embed[t] : -1;
    for (int32_t first = 0; first < op.width; first += kPiece) {
      const int32_t n = std::min(kPiece, op.width - first);
      if (embed < 0) dequantize(args.table, args.token[t], first, n, w);
      for (int32_t i = 0; i < n; ++i)
        store_element(
            out, op.out, first + i,
            embed < 0 ? w[i] * op.scale : load_element(row_at(args.embeds, embed), DType::f32, first + i));
    }
  }
}

constexpr EmbeddingVariant kVariants[] = {{"ref", [](const Embedding&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const EmbeddingVariant> embedding_ref() { return kVariants; }

}  // namespace gannet
