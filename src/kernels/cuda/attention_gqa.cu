// `attention_gqa` in the order of its contract, operation by operation as the CPU: one block a query head, cuts of
// 256 keys in rising order. Bound by latency at short contexts; it reads the keys once for each head, so grouped
// heads share them through the L2 alone.
#include "kernels/attention_gqa.h"
#include "kernels/cuda/common.cuh"

namespace gannet {
namespace {

constexpr int kThreads = 256, kCut = 256, kMaxWidth = 512;

struct Params {
  AttentionGqa op;
  cuda::Rows q, out;
  const int32_t *row_seq, *row_pos;
  PagedRows key, value;
};

__device__ inline float element(const PagedRows& plane, const std::byte* row, int i) {
  if (plane.format == RowFormat::f16) return __half2float(reinterpret_cast<const __half*>(row)[i]);
  if (plane.format == RowFormat::bf16) return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(row)[i]);
  return reinterpret_cast<const float*>(row)[i];
}
__device__ inline const std::byte* row_of(const PagedRows& plane, int seq, int row) {
  const int64_t block = plane.block_table[int64_t{seq} * plane.max_blocks + row / plane.rows_per_block];
  return plane.base + block * plane.block_bytes + plane.codes_offset +
         int64_t{row % plane.rows_per_block} * row_code_bytes(plane.format, plane.width);
}

__global__ void attention_kernel(const __grid_constant__ Params p) {
  __shared__ float query[kMaxWidth], score[kCut], part[2];
  const int64_t t = blockIdx.x;
  const int h = blockIdx.y, d = p.op.head_dim, channel = h / (p.op.heads / p.op.kv_heads) * d;
  const int seq = p.row_seq[t], last = p.row_pos[t];
  const int first = p.op.window > 0 && last - p.op.window + 1 > 0 ? last - p.op.window + 1 : 0;
  for (int i = threadIdx.x; i < d; i += kThreads) query[i] = p.q.get(t * p.q.row + h * p.q.head + i);
  float total[kMaxWidth / kThreads] = {}, most = 0, sum = 0;  // of channels threadIdx.x, threadIdx.x + kThreads
  bool any = false;
  for (int cut = first / kCut * kCut; cut <= last; cut += kCut) {
    const int begin = first > cut ? first - cut : 0, end = last - cut + 1 < kCut ? last - cut + 1 : kCut;
    __syncthreads();
    const int j16 = threadIdx.x % 16;
    for (int base = 0; base < kCut; base += kThreads / 16) {  // 16 lanes a key
      const int j = base + threadIdx.x / 16;
      float s = __int_as_float(0xFF800000);
      const bool live = j >= begin && j < end;
      float acc = 0;
      if (live) {
        const std::byte* row = row_of(p.key, seq, cut + j);
        for (int i = j16; i < d; i += 16) acc = __fmaf_rn(query[i], element(p.key, row, channel + i), acc);
      }
      acc = cuda::sum16(acc);
      if (live) s = __fmul_rn(acc, p.op.scale);
      if (j16 == 0) score[j] = s;
    }
    __syncthreads();
    if (threadIdx.x < 32) {  // the second half repeats the first
      float m = __int_as_float(0xFF800000), lanes = 0;
      for (int j = j16; j < kCut; j += 16) m = fmaxf(m, score[j]);
      m = cuda::max16(m);
      const int from = begin / 16 * 16, to = (end + 15) / 16 * 16;
      for (int j = from + j16; j < to; j += 16) {
        const float e = cuda::exp_as_cpu(__fsub_rn(score[j], m));
        __syncwarp();
        if (threadIdx.x < 16) score[j] = e;
        __syncwarp();
        lanes = __fadd_rn(lanes, e);
      }
      lanes = cuda::sum16(lanes);
      if (threadIdx.x == 0) {
        part[0] = m;
        part[1] = lanes;
      }
    }
    __syncthreads();
    const float cut_most = part[0], cut_sum = part[1];
    const float higher = any && most > cut_most ? most : cut_most;
    const float a = any ? cuda::exp_as_cpu(__fsub_rn(most, higher)) : 0,
                b = cuda::exp_as_cpu(__fsub_rn(cut_most, higher));
#pragma unroll
    for (int n = 0; n < kMaxWidth / kThreads; ++n) {
      const int c = threadIdx.x + n * kThreads;
      if (c >= d) continue;
      float acc = 0;
#pragma unroll 8
      for (int j = begin; j < end; ++j)
        acc = __fmaf_rn(score[j], element(p.value, row_of(p.value, seq, cut + j), channel + c), acc);
      total[n] = any ? __fadd_rn(__fmul_rn(total[n], a), __fmul_rn(acc, b)) : acc;
    }
    sum = any ? __fadd_rn(__fmul_rn(sum, a), __fmul_rn(cut_sum, b)) : cut_sum;
    most = higher;
    any = true;
  }
#pragma unroll
  for (int n = 0; n < kMaxWidth / kThreads; ++n) {
    const int c = threadIdx.x + n * kThreads;
    if (c < d) p.out.set(t * p.out.row + h * p.out.head + c, __fdiv_rn(total[n], sum));
  }
}

bool fits(const AttentionGqa& op, const Machine& machine) {
  return cuda::on_device(machine) && op.head_dim % 16 == 0 && op.head_dim <= kMaxWidth;
}

void run(const AttentionGqa& op, const AttentionGqaArgs& args, Exec& exec) {
  check_heads(args.q, args.q.dim(0), op.heads, op.head_dim, op.q);  // positions are on the device
  check_heads(args.out, args.q.dim(0), op.heads, op.head_dim, op.out);
  if (args.q.dim(0) == 0) return;
  const Params p{op, cuda::Rows(args.q), cuda::Rows(args.out), args.row_seq, args.row_pos, args.key, args.value};
  attention_kernel<<<dim3(static_cast<unsigned>(args.q.dim(0)), static_cast<unsigned>(op.heads)), kThreads, 0,
                     cuda::stream_of(exec)>>>(p);
  cuda::launched("attention_gqa");
}

}  // namespace

std::span<const AttentionGqaVariant> attention_gqa_cuda() {
  static constexpr AttentionGqaVariant kVariants[] = {{"cuda", fits, run}};
  return kVariants;
}

}  // namespace gannet
