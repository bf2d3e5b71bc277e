#include "kernels/embedding.h"

#include "kernels/args_check.h"

namespace gannet {

void check_embedding(const Embedding& op, const EmbeddingArgs& args) {
  const int64_t n_rows = args.out.dim(0);
  check_matrix(args.out, n_rows, op.width, op.out);
  GANNET_CHECK(args.table.format == op.format && args.table.in == op.width, "table [{}, {}] of format {}",
               args.table.out, args.table.in, static_cast<int>(args.table.format));
  for (int64_t t = 0; t < n_rows; ++t) {
    const int64_t embed = args.row_embed != nullptr ? args.row_embed[t] : -1;
    if (embed < 0)
      GANNET_CHECK(args.token[t] >= 0 && args.token[t] < args.table.out, "token {} of {}", args.token[t],
                   args.table.out);
    else
      GANNET_CHECK(args.embeds.rank == 2 && embed < args.embeds.dim(0) && args.embeds.dim(1) == op.width,
                   "embed row {} of {}", embed, args.embeds.dim(0));
  }
}

Planned<Embedding, EmbeddingArgs> plan(const Embedding& op, const Machine& machine) {
  GANNET_CHECK(op.format != WeightFormat::none && op.width % weight_format_info(op.format).block_elements == 0,
               "width {}, format {}", op.width, static_cast<int>(op.format));
  return choose<Embedding, EmbeddingArgs>(op, machine, {embedding_cpu(), embedding_ref()}, embedding_cuda());
}

}  // namespace gannet
