// The inner loops of sparse attention and of the indexer, once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_view.h"
#include "runtime/exec.h"

namespace gannet {

struct SparseKernels {
  // One cached row to fp32, as decode_row(); width a multiple of 32.
  void (*decode)(RowFormat format, const std::byte* codes, const std::byte* scales, int32_t width, float* out);

  // `heads` queries [heads, D] over keys [n, D]: out [heads, D]. p: scratch of heads rounded up to 4, times n
  // rounded up to 16.
  void (*attend)(const float* q, int32_t heads, const float* keys, int32_t n, int32_t width, float scale,
                 const float* sink, bool round_p, float* p, float* out);

  // Scores of keys [n, w] for one query [H, w] with head weights [H]. dots: scratch of H rounded up to 16.
  void (*score)(const float* query, const float* weight, int32_t heads, const float* keys, int32_t n, int32_t width,
                float* dots, float* scores);
};

extern const SparseKernels sparse_kernels_avx2;
extern const SparseKernels sparse_kernels_avx512;

inline bool has_sparse_kernels(const Machine& machine, int32_t width) {
  return machine.cpu.avx2 && width % 32 == 0;
}
inline const SparseKernels& sparse_kernels(bool avx512) {
  return avx512 ? sparse_kernels_avx512 : sparse_kernels_avx2;
}

}  // namespace gannet
