// `moe_experts` of a decode step in two launches: gate, up, activation and routing weight; then down. A block takes
// 16 or more rows of one expert's weights and reads them once for up to 32 of its tokens; experts without tokens
// cost nothing. Sums as in mma_rows.cuh. Bound by bytes: weights of the experts that have rows, each once up to 32
// rows an expert.
#include "kernels/cuda/mma_rows.cuh"
#include "kernels/moe_experts.h"

namespace gannet {
namespace {

using namespace cuda;

constexpr int kMaxExperts = 128;  // of one rank; their addresses travel as launch parameters
constexpr int kThreads = 32 * kWarps;

struct Matrix {
  const std::byte *codes, *scales;
};
struct Params {
  Matrix first[kMaxExperts], second[kMaxExperts];  // w1, w3; or w2 and nothing
  int64_t row_bytes, scale_row_bytes;
  const int32_t* offset;
  const float* weight;
  const __nv_bfloat16* x;
  int64_t x_row;
  __nv_bfloat16* y;
  int64_t y_row;
  int32_t n_experts, out, in, n_parts;
  float limit;
};

// The index-th expert that has rows, or -1. By all threads of the block.
__device__ inline int pick_expert(const int32_t* offset, int n_experts, int index) {
  __shared__ uint32_t mask[kMaxExperts / 32];
  __shared__ int picked;
  const int e = threadIdx.x;
  const bool has = e < n_experts && offset[e + 1] > offset[e];
  const uint32_t votes = __ballot_sync(0xFFFFFFFFu, has);
  if (e < kMaxExperts && e % 32 == 0) mask[e / 32] = votes;
  if (e == 0) picked = -1;
  __syncthreads();
  int before = __popc(votes & ((1u << e % 32) - 1));
  for (int w = 0; w < e / 32 && w < kMaxExperts / 32; ++w) before += __popc(mask[w]);
  if (has && before == index) picked = e;
  __syncthreads();
  return picked;
}

template <class F>
__device__ inline TileRows expert_tile(const Params& p, const Matrix& m, int row) {
  TileRows tile;
  for (int r = 0; r < 2; ++r) {
    const int i = row + 8 * r;
    tile.codes[r] = m.codes + i * p.row_bytes;
    tile.scales[r] = m.scales + (F::kBits == 8 ? i / 32 : i) * p.scale_row_bytes;
  }
  return tile;
}

__device__ inline float rounded(float v) { return __bfloat162float(__float2bfloat16_rn(v)); }

template <class F, int NT, bool kDown>
__global__ void __launch_bounds__(kThreads) expert_kernel(const __grid_constant__ Params p) {
  __shared__ float partial[kDown ? 1 : 2][kWarps * 16 * 8 * NT];
  const int expert = pick_expert(p.offset, p.n_experts, blockIdx.y);
  if (expert < 0) return;
  const int begin = p.offset[expert], end = p.offset[expert + 1];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int tiles = kWarps / p.n_parts, part = warp % p.n_parts, chunks = p.in / kChunkColumns<F>;
  const int first_row = blockIdx.x * tiles * 16, row = first_row + warp / p.n_parts * 16;
  const int from = split_begin(chunks, part, p.n_parts), to = split_begin(chunks, part + 1, p.n_parts);
  for (int token = begin; token < end; token += 8 * NT) {
    if (row < p.out) {
      const __nv_bfloat16* x[NT];
      for (int n = 0; n < NT; ++n) {
        const int i = token + 8 * n + g;
        x[n] = i < end ? p.x + i * p.x_row : nullptr;
      }
      for (int m = 0; m < (kDown ? 1 : 2); ++m) {
        float acc[NT][4] = {};
        mma_rows<F, NT>(expert_tile<F>(p, m == 0 ? p.first[expert] : p.second[expert], row + g), from, to, t, x,
                        acc);
        store_partial<NT>(partial[m], warp, lane, acc);
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < tiles * 16 * 8 * NT; i += kThreads) {
      const int r = i % (tiles * 16), n = i / (tiles * 16), o = first_row + r;
      if (o >= p.out || token + n >= end) continue;
      float v = rounded(sum_partial<NT>(partial[0], r / 16, p.n_parts, r % 16, n));
      if constexpr (!kDown) {
        float u = rounded(sum_partial<NT>(partial[1], r / 16, p.n_parts, r % 16, n));
        if (p.limit > 0) {
          v = v > p.limit ? p.limit : v;  // a NaN stays one
          u = u > p.limit ? p.limit : u < -p.limit ? -p.limit : u;
        }
        v = __fmul_rn(silu_as_cpu(v), u);
        if (p.weight != nullptr) v = __fmul_rn(v, p.weight[token + n]);
      }
      p.y[int64_t{token + n} * p.y_row + o] = __float2bfloat16_rn(v);
    }
    __syncthreads();
  }
}

template <class F, bool kDown>
void start(Params p, int64_t rows, Exec& exec) {
  p.n_parts = split_count(p.out, p.in / kChunkColumns<F>);
  const dim3 grid(blocks_for(p.out, kWarps / p.n_parts * 16),
                  static_cast<unsigned>(std::min<int64_t>(rows, p.n_experts)));
  const auto go = [&](auto kernel) { kernel<<<grid, kThreads, 0, stream_of(exec)>>>(p); };
  if (rows <= 8)
    go(expert_kernel<F, 1, kDown>);
  else if (rows <= 8 * int64_t{p.n_experts})
    go(expert_kernel<F, 2, kDown>);
  else
    go(expert_kernel<F, 4, kDown>);
  launched("moe_experts");
}

Matrix address(const WeightView& w, const WeightView& like) {
  GANNET_CHECK(w.row_bytes == like.row_bytes && w.scale_row_bytes == like.scale_row_bytes &&
                   w.row_bytes % 16 == 0 && reinterpret_cast<uintptr_t>(w.codes) % 16 == 0,
               "rows {} and {} bytes apart", w.row_bytes, like.row_bytes);
  return {w.codes, w.scales};
}

template <class F>
void run_format(const MoeExperts& op, const MoeExpertsArgs& args, Exec& exec) {
  const Arena::Scope scope(exec.arena);
  const int64_t rows = args.x.dim(0);
  const View a = exec.arena.tensor(DType::bf16, {rows, op.ffn});
  Params p{};
  p.n_experts = static_cast<int32_t>(args.experts.size());
  p.offset = args.offset;
  p.limit = op.limit;
  const auto rows_of = [&](const WeightView& like, View x, View y) {
    p.row_bytes = like.row_bytes;
    p.scale_row_bytes = like.scale_row_bytes;
    p.x = x.as<__nv_bfloat16>();
    p.x_row = x.stride[0];
    p.y = y.as<__nv_bfloat16>();
    p.y_row = y.stride[0];
    p.out = static_cast<int32_t>(y.dim(1));
    p.in = static_cast<int32_t>(x.dim(1));
  };
  for (size_t e = 0; e < args.experts.size(); ++e) {
    p.first[e] = address(args.experts[e].w1, args.experts[0].w1);
    p.second[e] = address(args.experts[e].w3, args.experts[0].w1);
  }
  p.weight = args.weight;
  rows_of(args.experts[0].w1, args.x, a);
  start<F, false>(p, rows, exec);
  for (size_t e = 0; e < args.experts.size(); ++e) p.first[e] = address(args.experts[e].w2, args.experts[0].w2);
  rows_of(args.experts[0].w2, a, args.out);
  start<F, true>(p, rows, exec);
}

bool fits(const MoeExperts& op, const Machine& machine) {
  const bool fp4 = op.format == WeightFormat::mxfp4_1x32, fp8 = op.format == WeightFormat::fp8_32x32;
  return on_device(machine) && !op.quantize_input && op.x == DType::bf16 && (fp4 || fp8) && op.width % 128 == 0 &&
         op.ffn % 128 == 0;
}

void run(const MoeExperts& op, const MoeExpertsArgs& args, Exec& exec) {
  check_matrix(args.x, args.x.dim(0), op.width, op.x);
  check_matrix(args.out, args.x.dim(0), op.width, op.x);
  GANNET_CHECK(args.experts.size() <= kMaxExperts, "{} experts on one device, at most {}",
               static_cast<long long>(args.experts.size()), kMaxExperts);
  if (args.x.dim(0) == 0 || args.experts.empty()) return;
  if (op.format == WeightFormat::mxfp4_1x32)
    run_format<Fp4>(op, args, exec);
  else
    run_format<Fp8>(op, args, exec);
}

}  // namespace

std::span<const MoeExpertsVariant> moe_experts_cuda() {
  static constexpr MoeExpertsVariant kVariants[] = {{"mma", fits, run}};
  return kVariants;
}

}  // namespace gannet
