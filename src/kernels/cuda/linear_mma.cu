// `linear` on tensor cores: fp8_32x32, mxfp4_1x32 and bf16 weights times bf16 rows. Decode reads each weight once
// for up to 64 rows; more rows repeat that. See mma_rows.cuh for the arithmetic and linear_cuda.h for the sum's
// bound.
#include "kernels/cuda/linear_cuda.h"
#include "kernels/cuda/mma_rows.cuh"

namespace gannet::cuda {
namespace {

struct Params {
  WeightView weight;
  const __nv_bfloat16* x;
  int64_t x_row;
  const float* bias;
  std::byte* y;
  int64_t y_row;
  bool y_bf16;
  int32_t rows, out, in, group_out, n_parts;
};

__device__ inline TileRows tile_at(const WeightView& w, int64_t row) {
  TileRows tile;
  for (int r = 0; r < 2; ++r) {
    const int64_t i = row + 8 * r;
    tile.codes[r] = w.codes + i * w.row_bytes;
    tile.scales[r] = w.scales + (w.format == WeightFormat::fp8_32x32 ? i / 32 : i) * w.scale_row_bytes;
  }
  return tile;
}

template <class F, int NT>
__global__ void __launch_bounds__(32 * kWarps) linear_kernel(const __grid_constant__ Params p) {
  __shared__ float partial[kWarps * 16 * 8 * NT];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int tiles = kWarps / p.n_parts, part = warp % p.n_parts;
  const int64_t first_row = int64_t{blockIdx.x} * tiles * 16, row = first_row + warp / p.n_parts * 16;
  const int first_token = blockIdx.y * 8 * NT;
  if (row < p.out) {
    const __nv_bfloat16* x[NT];
    for (int n = 0; n < NT; ++n) {
      const int token = first_token + 8 * n + g;
      x[n] = token < p.rows ? p.x + token * p.x_row + row / p.group_out * p.in : nullptr;
    }
    float acc[NT][4] = {};
    const int chunks = p.in / kChunkColumns<F>;
    mma_rows<F, NT>(tile_at(p.weight, row + g), split_begin(chunks, part, p.n_parts),
                    split_begin(chunks, part + 1, p.n_parts), t, x, acc);
    store_partial<NT>(partial, warp, lane, acc);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < tiles * 16 * 8 * NT; i += 32 * kWarps) {
    const int r = i % (tiles * 16), token = i / (tiles * 16);
    const int64_t o = first_row + r;
    if (o >= p.out || first_token + token >= p.rows) continue;
    float v = sum_partial<NT>(partial, r / 16, p.n_parts, r % 16, token);
    if (p.bias != nullptr) v = __fadd_rn(v, p.bias[o]);
    const int64_t at = int64_t{first_token + token} * p.y_row + o;
    if (p.y_bf16)
      reinterpret_cast<__nv_bfloat16*>(p.y)[at] = __float2bfloat16_rn(v);
    else
      reinterpret_cast<float*>(p.y)[at] = v;
  }
}

template <class F>
void start(Params p, Exec& exec) {
  p.n_parts = split_count(p.out, p.in / kChunkColumns<F>);
  const auto go = [&](auto kernel, int tokens) {
    kernel<<<dim3(blocks_for(p.out, kWarps / p.n_parts * 16), blocks_for(p.rows, tokens)), 32 * kWarps, 0,
             stream_of(exec)>>>(p);
  };
  if (p.rows <= 8)
    go(linear_kernel<F, 1>, 8);
  else if (p.rows <= 16)
    go(linear_kernel<F, 2>, 16);
  else if (p.rows <= 32)
    go(linear_kernel<F, 4>, 32);
  else
    go(linear_kernel<F, 8>, 64);
  launched("linear_mma");
}

}  // namespace

bool linear_mma_fits(const Linear& op, const Machine& machine) {
  if (!on_device(machine) || op.x != DType::bf16 || op.out % 16 != 0) return false;
  switch (op.format) {
    case WeightFormat::fp8_32x32:
      return op.out % 32 == 0 && op.in % kChunkColumns<Fp8> == 0;
    case WeightFormat::mxfp4_1x32:
      return op.in % kChunkColumns<Fp4> == 0;
    case WeightFormat::bf16:
      return op.in % kChunkColumns<Bf16> == 0;
    default:
      return false;
  }
}

void linear_mma(const Linear& op, const LinearArgs& args, Exec& exec) {
  check_linear(op, args);
  if (args.x.dim(0) == 0) return;
  const auto aligned = [](const void* at, int64_t row_bytes) {
    return reinterpret_cast<uintptr_t>(at) % 16 == 0 && row_bytes % 16 == 0;
  };
  GANNET_CHECK(aligned(args.weight.codes, args.weight.row_bytes), "weight rows of {} bytes are not on 16 bytes",
               args.weight.row_bytes);
  GANNET_CHECK(aligned(args.x.data, args.x.stride[0] * 2), "rows of x, {} apart, are not on 16 bytes",
               args.x.stride[0]);
  const Params p{args.weight,
                 args.x.as<__nv_bfloat16>(),
                 args.x.stride[0],
                 args.bias,
                 args.y.data,
                 args.y.stride[0],
                 op.y == DType::bf16,
                 static_cast<int32_t>(args.x.dim(0)),
                 op.groups * op.out,
                 op.in,
                 op.out,
                 1};
  if (op.format == WeightFormat::fp8_32x32)
    start<Fp8>(p, exec);
  else if (op.format == WeightFormat::mxfp4_1x32)
    start<Fp4>(p, exec);
  else
    start<Bf16>(p, exec);
}

}  // namespace gannet::cuda
