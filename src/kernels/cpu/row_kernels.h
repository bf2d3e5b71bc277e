// Loops over one row for one instruction set, on plain pointers: what the element-wise ops and norms are made of.
#pragma once

#include <cstdint>

namespace gannet {

struct RowKernels {
  // A row of fp32 or bf16 values.
  struct Row {
    const void* data;
    bool is_bf16;
  };
  struct Out {
    void* data;
    bool is_bf16;
  };
  void (*rms_norm)(Row x, const float* weight, float offset, float eps, Out out, int32_t n);
  // act(min(g, limit)) * clamp(u, limit) * scale; limit 0: none. gelu: the tanh form, else silu.
  void (*gated)(Row gate, Row up, bool gelu, float limit, float scale, bool scaled, Out out, int32_t n);
  void (*add)(Row a, Row b, Out out, int32_t n);
  void (*scale)(Row x, float factor, Out out, int32_t n);
  void (*to_f16)(Row x, uint16_t* out, int32_t n);
};

extern const RowKernels row_kernels_avx2, row_kernels_avx512;

}  // namespace gannet
