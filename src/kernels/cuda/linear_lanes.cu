// `linear` in the 16 lanes of linear.h: half a warp an output, any shape, the CPU's bits. Bound by latency and L1
// for small matrices; used where the tensor-core form does not fit (fp32 rows, GGUF blocks, ragged shapes).
#include "kernels/cuda/linear_cuda.h"
#include "kernels/cuda/weight_lanes.cuh"

namespace gannet::cuda {
namespace {

constexpr int kThreads = 256, kOutputs = kThreads / 16;

template <WeightFormat F, int TT>
__global__ void lanes_kernel(WeightView w, Rows x, const float* bias, Rows y, int rows, int out, int in,
                             int group_out) {
  const int j = threadIdx.x % 16, o = blockIdx.x * kOutputs + threadIdx.x / 16, first = blockIdx.y * TT;
  const int row = o < out ? o : out - 1;  // all 16 lanes stay for the shuffles
  const std::byte* codes = w.codes + row * w.row_bytes;
  const std::byte* scales = w.scales + (F == WeightFormat::fp8_32x32 ? row / 32 : row) * w.scale_row_bytes;
  const int64_t column = int64_t{row / group_out} * in;
  float acc[TT] = {};
#pragma unroll 4
  for (int b = 0; b < (in + 31) / 32; ++b) {
    float v[2];
    lane_pair<F>(codes, scales, b, j, in, v);
    for (int h = 0; h < 2; ++h) {
      const int k = 32 * b + 16 * h + j;
#pragma unroll
      for (int t = 0; t < TT; ++t)
        if (first + t < rows && k < in) acc[t] = __fmaf_rn(x.get((first + t) * x.row + column + k), v[h], acc[t]);
    }
  }
#pragma unroll
  for (int t = 0; t < TT; ++t) {
    float v = sum16(acc[t]);
    if (bias != nullptr) v = __fadd_rn(v, bias[row]);
    if (j == 0 && o < out && first + t < rows) y.set((first + t) * y.row + o, v);
  }
}

}  // namespace

bool linear_lanes_fits(const Linear& op, const Machine& machine) {
  return on_device(machine) && with_lane_format(op.format, [](auto) {});
}

void linear_lanes(const Linear& op, const LinearArgs& args, Exec& exec) {
  check_linear(op, args);
  const auto rows = static_cast<int32_t>(args.x.dim(0));
  const int32_t out = op.groups * op.out;
  if (rows == 0 || out == 0) return;
  with_lane_format(op.format, [&](auto format) {
    const auto go = [&](auto kernel, int tokens) {
      kernel<<<dim3(blocks_for(out, kOutputs), blocks_for(rows, tokens)), kThreads, 0, stream_of(exec)>>>(
          args.weight, Rows(args.x), args.bias, Rows(args.y), rows, out, op.in, op.out);
    };
    if (rows == 1)
      go(lanes_kernel<decltype(format)::value, 1>, 1);
    else
      go(lanes_kernel<decltype(format)::value, 8>, 8);
  });
  launched("linear_lanes");
}

}  // namespace gannet::cuda
