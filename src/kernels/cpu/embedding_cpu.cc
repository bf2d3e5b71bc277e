#include "kernels/args_check.h"
#include "kernels/cpu/linear_kernels.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/embedding.h"

namespace gannet {
namespace {

void run(const Embedding& op, const EmbeddingArgs& args, Exec& exec, const LinearKernels& linear,
         const RowKernels& rows) {
  check_embedding(op, args);
  const Arena::Scope scope(exec.arena);
  const int64_t stride = (int64_t{op.width} + 15) / 16 * 16;
  float* scratch = exec.arena.array<float>(stride * exec.pool.size());
  exec.pool.parallel_chunks(args.out.dim(0), 8, [&](int thread, int64_t begin, int64_t end) {
    float* w = scratch + thread * stride;
    for (int64_t t = begin; t < end; ++t) {
      const RowKernels::Out out{row_at(args.out, t), op.out == DType::bf16};
      const int64_t embed = args.row_embed != nullptr ? args.row_embed[t] : -1;
      if (embed >= 0) {
        rows.scale({row_at(args.embeds, embed), false}, 1.0f, out, op.width);
        continue;
      }
      linear.dequantize(weight_rows(args.table, args.token[t], 1), w);
      rows.scale({w, false}, op.scale, out, op.width);
    }
  });
}

constexpr EmbeddingVariant kVariants[] = {
    {"avx512", [](const Embedding&, const Machine& machine) { return machine.cpu.avx512; },
     [](const Embedding& op, const EmbeddingArgs& args, Exec& exec) {
       run(op, args, exec, linear_kernels_avx512(op.format), row_kernels_avx512);
     }},
    {"avx2", [](const Embedding&, const Machine& machine) { return machine.cpu.avx2; },
     [](const Embedding& op, const EmbeddingArgs& args, Exec& exec) {
       run(op, args, exec, linear_kernels_avx2(op.format), row_kernels_avx2);
     }},
};

}  // namespace

std::span<const EmbeddingVariant> embedding_cpu() { return kVariants; }

}  // namespace gannet
