// `sparse_attention` at the shapes of DeepSeek-V4.1: 64 heads of 512 channels over 128 window rows (fp8, one scale
// for 32) and 512 or no selected rows (fp4, one e4m3 scale for 16).
//
// One cluster of 8 blocks a token. Each block scores an eighth of the keys for all heads; maxima, sums and P cross
// the cluster through shared memory; then each block weighs all keys for an eighth of the channels. So there is one
// softmax with one maximum, no partial result leaves the chip, and a token's bits depend on its keys alone.
//
// Sum    scores as in mma_rows.cuh, 8 k-steps of 64 or 4 of 128 channels; P.V over all key slots in order, 16 a
// step;
//        the denominator over 8 lanes of 16 keys, tiles, blocks, then the sink.
// Error  a score within 576 * 2^-23 scale sum |q_c k_c|, out within 8 * n_keys * 2^-23 max |row| beyond that; P may
// flip to
//        the neighbouring bf16.
// Bound  bytes of the rows, read twice (once from memory, once from L2), or 4 * 64 * 512 * 640 operations a token.
#include <cooperative_groups.h>

#include "kernels/cuda/mma_rows.cuh"
#include "kernels/sparse_attention.h"

namespace gannet {
namespace {

using namespace cuda;
namespace cg = cooperative_groups;

constexpr int kHeads = 64, kWidth = 512, kWindow = 128, kCluster = 8;
constexpr int kColumns = kWidth / kCluster;  // channels a block weighs
constexpr int kMasked = INT32_MIN;

struct Params {
  const __nv_bfloat16* q;
  int64_t q_row, q_head;
  Rows out;
  const int32_t *row_seq, *row_pos;
  RecentRows recent;
  PagedRows rows;
  const int32_t *selected, *n_selected;
  const float* sink;
  float scale;
};

template <int MT>  // tiles of 16 keys a block scores
struct Shape {
  static constexpr int kKeys = kCluster * 16 * MT;
  static constexpr int kSlice = 16 * MT;
  static constexpr int kBlockWarps = 2 * MT > 8 ? 2 * MT : 8;
  static constexpr int kPStride = kKeys + 8;  // elements; 16 bytes more than a multiple of 128: no bank conflicts
  static constexpr int kVStride = kColumns + 8;
};

template <int MT>
struct Shared {
  __nv_bfloat16 p[kHeads * Shape<MT>::kPStride];
  __nv_bfloat16 v[128 * Shape<MT>::kVStride];  // one group of 128 keys
  int32_t
      id[Shape<MT>::kKeys];  // window: row of the step, or ~slot of the ring; selected: row of the pool; kMasked
  float most[kCluster][kHeads], sum[kCluster][kHeads];
  float tile_most[MT][kHeads], tile_sum[MT][kHeads];
  std::byte no_scales[32];
};

struct KeyBytes {
  const std::byte *codes, *scales;
};
__device__ inline KeyBytes key_bytes(const Params& p, int slot, int id, int seq) {
  if (slot < kWindow) {
    if (id >= 0)
      return {p.recent.step.codes + int64_t{id} * kWidth, p.recent.step.scales + int64_t{id} * (kWidth / 32)};
    const RingRows& r = p.recent.ring;
    const std::byte* ring = r.base + r.ring_slot[seq] * r.ring_bytes;
    return {ring + r.codes_offset + int64_t{~id} * kWidth, ring + r.scales_offset + int64_t{~id} * (kWidth / 32)};
  }
  const std::byte* block = p.rows.base + int64_t{id / p.rows.rows_per_block} * p.rows.block_bytes;
  const int i = id % p.rows.rows_per_block;
  return {block + p.rows.codes_offset + i * (kWidth / 2), block + p.rows.scales_offset + i * (kWidth / 16)};
}

// Which row lies behind a key slot: window slot s holds position pos - 127 + s, slot 128 + i the i-th selected row.
__device__ inline int key_id(const Params& p, int64_t t, int slot, int topk) {
  const int seq = p.row_seq[t];
  if (slot < kWindow) {
    const int position = p.row_pos[t] - kWindow + 1 + slot, first = p.recent.seq_first_pos[seq];
    if (position < 0) return kMasked;
    return position >= first ? p.recent.seq_first_row[seq] + position - first
                             : ~(position % p.recent.ring.capacity);
  }
  const int i = slot - kWindow;
  if (i >= p.n_selected[t]) return kMasked;
  const int row = p.selected[t * topk + i];
  return p.rows.block_table[int64_t{seq} * p.rows.max_blocks + row / p.rows.rows_per_block] *
             p.rows.rows_per_block +
         row % p.rows.rows_per_block;
}

// Scores of the 16 keys from `slot` on for 32 heads; masked keys give -infinity.
template <int MT>
__device__ inline void score_tile(const Params& p, const Shared<MT>& s, int64_t t, int slot, int first_head,
                                  int lane, float (&acc)[4][4]) {
  const int g = lane / 4, j = lane % 4, seq = p.row_seq[t];
  TileRows tile;
  for (int r = 0; r < 2; ++r) {
    const int id = s.id[slot + g + 8 * r];
    const KeyBytes key = id == kMasked ? KeyBytes{nullptr, s.no_scales} : key_bytes(p, slot + g + 8 * r, id, seq);
    tile.codes[r] = key.codes;
    tile.scales[r] = key.scales;
  }
  // Scales of a masked row are read at every column: all of them at the 32 bytes of no_scales, which suffice.
  const __nv_bfloat16* q[4];
  for (int n = 0; n < 4; ++n) q[n] = p.q + t * p.q_row + (first_head + 8 * n + g) * p.q_head;
  if (slot < kWindow)
    mma_rows<Fp8, 4>(tile, 0, kWidth / kChunkColumns<Fp8>, j, q, acc);
  else
    mma_rows<Fp4Blocks, 4>(tile, 0, kWidth / kChunkColumns<Fp4Blocks>, j, q, acc);
  for (int n = 0; n < 4; ++n)
    for (int i = 0; i < 4; ++i) {
      const bool masked = tile.codes[i / 2] == nullptr;
      acc[n][i] = masked ? __int_as_float(0xFF800000) : __fmul_rn(acc[n][i], p.scale);
    }
}

// Over the 16 keys of a tile: rows g and g + 8 of each thread, then the threads of one column.
template <class Combine>
__device__ inline void over_keys(const float (&acc)[4][4], int lane, int first_head, float* to,
                                 const Combine& combine) {
  for (int n = 0; n < 4; ++n)
    for (int c = 0; c < 2; ++c) {
      float v = combine(acc[n][c], acc[n][c + 2]);
      for (int step = 4; step <= 16; step *= 2) v = combine(v, __shfl_xor_sync(0xFFFFFFFFu, v, step));
      if (lane < 4) to[first_head + 8 * n + 2 * lane + c] = v;
    }
}

// 128 keys from `slot` on, this block's channels, widened to bf16: v[key][column].
template <int MT>
__device__ inline void widen_values(const Params& p, Shared<MT>& s, int64_t t, int slot, int rank) {
  const int seq = p.row_seq[t];
  const int per_key = slot < kWindow ? 4 : 2;  // pieces of 16 bytes
  for (int i = threadIdx.x; i < 128 * per_key; i += blockDim.x) {
    const int k = i / per_key, piece = i % per_key, id = s.id[slot + k];
    auto* to = reinterpret_cast<uint32_t*>(s.v + k * Shape<MT>::kVStride + piece * (kColumns / per_key));
    const int words = 2 * 16 / per_key;  // pairs of columns in this piece: 8 or 16
    if (id == kMasked) {
      for (int w = 0; w < words; ++w) to[w] = 0;
      continue;
    }
    const KeyBytes key = key_bytes(p, slot + k, id, seq);
    const int bytes = kColumns / 4 * per_key / 1;  // of this block's columns in a row: 64 or 32
    const uint4 w = *reinterpret_cast<const uint4*>(key.codes + rank * bytes + 16 * piece);
    const uint32_t code[4] = {w.x, w.y, w.z, w.w};
    if (slot < kWindow) {
      const Factors f = factors_of<Fp8>(key.scales, rank, piece);
      for (int c = 0; c < 4; ++c) {
        uint32_t even, odd;
        Fp8::widen(code[c], f.first[0], even, odd);
        if (f.second[0] != 0) even = times(even, f.second[0]), odd = times(odd, f.second[0]);
        to[2 * c] = __byte_perm(even, odd, 0x5410);
        to[2 * c + 1] = __byte_perm(even, odd, 0x7632);
      }
    } else {
      const Factors f = factors_of<Fp4Blocks>(key.scales, rank / 2, rank % 2 * 2 + piece);
      for (int c = 0; c < 4; ++c)
        for (int h = 0; h < 2; ++h) {  // nibbles 2h, 2h + 1 and four further on
          uint32_t a, b;
          Fp4::widen(code[c] >> (8 * h), f.first[c / 2], a, b);
          a = times(a, f.second[c / 2]);
          b = times(b, f.second[c / 2]);
          to[4 * c + h] = __byte_perm(a, b, 0x5410);
          to[4 * c + 2 + h] = __byte_perm(a, b, 0x7632);
        }
    }
  }
}

__device__ inline uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// acc[4][4] += P[16 heads, 128 keys] V[128 keys, 32 columns].
template <int MT>
__device__ inline void weigh(const Shared<MT>& s, int slot, int head, int column, int lane, float (&acc)[4][4]) {
#pragma unroll
  for (int k = 0; k < 128; k += 16) {
    uint32_t a[4];
    const auto* p_at = s.p + (head + lane % 16) * Shape<MT>::kPStride + slot + k + lane / 16 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared_address(p_at)));
#pragma unroll
    for (int n = 0; n < 4; n += 2) {
      uint32_t b[4];
      const auto* v_at = s.v + (k + lane % 16) * Shape<MT>::kVStride + column + 8 * n + lane / 16 * 8;
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(shared_address(v_at)));
      mma_16x8x16(acc[n], a, b[0], b[1]);
      mma_16x8x16(acc[n + 1], a, b[2], b[3]);
    }
  }
}

template <int MT>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(32 * Shape<MT>::kBlockWarps)
    attention_kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& s = *reinterpret_cast<Shared<MT>*>(memory);
  using S = Shape<MT>;
  const cg::cluster_group cluster = cg::this_cluster();
  const auto rank = static_cast<int>(cluster.block_rank());
  const int64_t t = blockIdx.x / kCluster;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < S::kKeys; i += blockDim.x) s.id[i] = key_id(p, t, i, S::kKeys - kWindow);
  if (threadIdx.x < 32) s.no_scales[threadIdx.x] = std::byte{0};
  __syncthreads();

  const int tile = warp / 2, first_head = warp % 2 * 32;
  float acc[4][4] = {};
  if (tile < MT) {
    score_tile<MT>(p, s, t, rank * S::kSlice + 16 * tile, first_head, lane, acc);
    over_keys(acc, lane, first_head, s.tile_most[tile], [](float a, float b) { return fmaxf(a, b); });
  }
  __syncthreads();
  if (threadIdx.x < kHeads) {
    float most = s.tile_most[0][threadIdx.x];
    for (int m = 1; m < MT; ++m) most = fmaxf(most, s.tile_most[m][threadIdx.x]);
    for (int r = 0; r < kCluster; ++r)
      cluster.map_shared_rank(&s.most[0][0], r)[rank * kHeads + threadIdx.x] = most;
  }
  cluster.sync();
  if (tile < MT) {
    for (int n = 0; n < 4; ++n)
      for (int c = 0; c < 2; ++c) {
        const int head = first_head + 8 * n + 2 * (lane % 4) + c;
        float most = s.most[0][head];
        for (int r = 1; r < kCluster; ++r) most = fmaxf(most, s.most[r][head]);
        for (int i = c; i < 4; i += 2) {
          acc[n][i] = exp_as_cpu(__fsub_rn(acc[n][i], most));
          s.p[head * S::kPStride + rank * S::kSlice + 16 * tile + lane / 4 + i / 2 * 8] =
              __float2bfloat16_rn(acc[n][i]);
        }
      }
    over_keys(acc, lane, first_head, s.tile_sum[tile], [](float a, float b) { return __fadd_rn(a, b); });
  }
  __syncthreads();
  if (threadIdx.x < kHeads) {
    float sum = s.tile_sum[0][threadIdx.x];
    for (int m = 1; m < MT; ++m) sum = __fadd_rn(sum, s.tile_sum[m][threadIdx.x]);
    for (int r = 0; r < kCluster; ++r) cluster.map_shared_rank(&s.sum[0][0], r)[rank * kHeads + threadIdx.x] = sum;
  }
  cluster.sync();
  constexpr int kPieces = S::kSlice / 8;  // of 16 bytes of P, a head and a block
  for (int i = threadIdx.x; i < kCluster * kHeads * kPieces; i += blockDim.x) {
    const int r = i / (kHeads * kPieces), head = i / kPieces % kHeads,
              at = head * S::kPStride + r * S::kSlice + i % kPieces * 8;
    if (r != rank)
      *reinterpret_cast<uint4*>(&s.p[at]) =
          *reinterpret_cast<const uint4*>(&cluster.map_shared_rank(&s.p[0], r)[at]);
  }

  float out[4][4] = {};
  const int head = warp % 4 * 16, column = warp / 4 * 32;
  for (int slot = 0; slot < S::kKeys; slot += 128) {
    __syncthreads();
    widen_values<MT>(p, s, t, slot, rank);
    __syncthreads();
    if (warp < 8) weigh<MT>(s, slot, head, column, lane, out);
  }
  if (warp < 8)
    for (int i = 0; i < 4; i += 2) {
      const int h = head + lane / 4 + i / 2 * 8;
      float most = s.most[0][h], sum = s.sum[0][h];
      for (int r = 1; r < kCluster; ++r) {
        most = fmaxf(most, s.most[r][h]);
        sum = __fadd_rn(sum, s.sum[r][h]);
      }
      sum = __fadd_rn(sum, exp_as_cpu(__fsub_rn(p.sink[h], most)));
      for (int n = 0; n < 4; ++n)
        for (int c = 0; c < 2; ++c)
          p.out.set(t * p.out.row + h * p.out.head + rank * kColumns + column + 8 * n + 2 * (lane % 4) + c,
                    __fdiv_rn(out[n][i + c], sum));
    }
  cluster.sync();  // no block leaves while another may read its P
}

template <int MT>
void start(const Params& p, int64_t rows, Exec& exec) {
  constexpr auto bytes = static_cast<int>(sizeof(Shared<MT>));
  cuda_ok(cudaFuncSetAttribute(attention_kernel<MT>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "cudaFuncSetAttribute");
  attention_kernel<MT>
      <<<static_cast<unsigned>(rows * kCluster), 32 * Shape<MT>::kBlockWarps, bytes, stream_of(exec)>>>(p);
  launched("sparse_attention");
}

bool fits(const SparseAttention& op, const Machine& machine) {
  return on_device(machine) && op.heads == kHeads && op.width == kWidth && op.window == kWindow &&
         (op.topk == 0 || op.topk == 512) && op.round_p && op.q == DType::bf16;
}

void run(const SparseAttention& op, const SparseAttentionArgs& args, Exec& exec) {
  check_heads(args.q, args.q.dim(0), op.heads, op.width, op.q);
  check_heads(args.out, args.q.dim(0), op.heads, op.width, op.out);
  GANNET_CHECK(args.recent.step.format == RowFormat::fp8_ue8m0 && args.recent.ring.format == RowFormat::fp8_ue8m0,
               "window rows of format {}", static_cast<int>(args.recent.step.format));
  GANNET_CHECK(op.topk == 0 || (args.rows.format == RowFormat::fp4_e4m3 && args.selected != nullptr),
               "selected rows of format {}", static_cast<int>(args.rows.format));
  if (args.q.dim(0) == 0) return;
  const Params p{args.q.as<__nv_bfloat16>(),
                 args.q.stride[0],
                 args.q.stride[1],
                 Rows(args.out),
                 args.row_seq,
                 args.row_pos,
                 args.recent,
                 args.rows,
                 args.selected,
                 args.n_selected,
                 args.sink,
                 op.scale};
  if (op.topk == 0)
    start<1>(p, args.q.dim(0), exec);
  else
    start<5>(p, args.q.dim(0), exec);
}

}  // namespace

std::span<const SparseAttentionVariant> sparse_attention_cuda() {
  static constexpr SparseAttentionVariant kVariants[] = {{"cluster", fits, run}};
  return kVariants;
}

}  // namespace gannet
