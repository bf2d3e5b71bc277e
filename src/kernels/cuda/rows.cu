// Element-wise ops and norms of rows, with the operations and so the bits of the CPU. Bound by launch latency at
// the few rows of a decode step, by bytes beyond.
#include "kernels/add.h"
#include "kernels/cuda/common.cuh"
#include "kernels/gated_activation.h"
#include "kernels/kv_append.h"
#include "kernels/rms_norm.h"
#include "kernels/row_gather.h"

namespace gannet {
namespace {

using cuda::Rows;

constexpr int kThreads = 256;

// ---- rms_norm: half a warp sums the squares in the 16 lanes of linear.h, the block writes ----------------------

__global__ void rms_norm_kernel(RmsNorm op, Rows x, const float* weight, Rows out, int heads) {
  __shared__ float factor;
  const int64_t t = blockIdx.x / heads, h = blockIdx.x % heads;
  const int64_t from = t * x.row + h * x.head, to = t * out.row + h * out.head;
  if (threadIdx.x < 32) {  // the second half repeats the first, for the shuffles
    const int j = threadIdx.x % 16;
    float squares = 0;
#pragma unroll 4
    for (int i = j; i < op.width; i += 16) {
      const float v = x.get(from + i);
      squares = __fmaf_rn(v, v, squares);
    }
    const float mean = __fdiv_rn(cuda::sum16(squares), static_cast<float>(op.width));
    if (threadIdx.x == 0) factor = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, op.eps)));
  }
  __syncthreads();
  for (int i = threadIdx.x; i < op.width; i += kThreads) {
    float v = __fmul_rn(x.get(from + i), factor);
    if (weight != nullptr)
      v = __fmul_rn(op.weight_offset != 0 ? __fadd_rn(weight[i], op.weight_offset) : weight[i], v);
    out.set(to + i, v);
  }
}

void run_rms_norm(const RmsNorm& op, const RmsNormArgs& args, Exec& exec) {
  check_rms_norm(op, args);
  const auto heads = static_cast<int>(args.x.rank == 3 ? args.x.dim(1) : 1);
  const int64_t n = args.x.dim(0) * heads;
  if (n == 0) return;
  rms_norm_kernel<<<static_cast<unsigned>(n), kThreads, 0, cuda::stream_of(exec)>>>(op, Rows(args.x), args.weight,
                                                                                    Rows(args.out), heads);
  cuda::launched("rms_norm");
}

// ---- add, gated_activation: one thread an element ---------------------------------------------------------------

__global__ void add_kernel(int width, Rows a, Rows b, Rows out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int64_t t = blockIdx.y;
  if (i < width) out.set(t * out.row + i, __fadd_rn(a.get(t * a.row + i), b.get(t * b.row + i)));
}

void run_add(const Add& op, const AddArgs& args, Exec& exec) {
  check_add(op, args);
  if (args.a.dim(0) == 0 || op.width == 0) return;
  add_kernel<<<dim3(cuda::blocks_for(op.width, kThreads), static_cast<unsigned>(args.a.dim(0))), kThreads, 0,
               cuda::stream_of(exec)>>>(op.width, Rows(args.a), Rows(args.b), Rows(args.out));
  cuda::launched("add");
}

__device__ inline float gelu_tanh(float x) {
  const float cube = __fmul_rn(__fmul_rn(x, x), x);
  const float twice_z = __fmul_rn(2 * 0.7978845608f, __fadd_rn(x, __fmul_rn(0.044715f, cube)));
  const float rest = __fdiv_rn(1.0f, __fadd_rn(cuda::exp_as_cpu(twice_z), 1.0f));
  return __fmul_rn(x, __fsub_rn(1.0f, rest));
}

__global__ void gated_kernel(GatedActivation op, Rows gate, Rows up, const float* row_scale, Rows out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int64_t t = blockIdx.y;
  if (i >= op.width) return;
  float g = gate.get(t * gate.row + i), u = up.get(t * up.row + i);
  if (op.limit > 0) {
    g = g > op.limit ? op.limit : g;  // a NaN stays one
    u = u > op.limit ? op.limit : u < -op.limit ? -op.limit : u;
  }
  float v = __fmul_rn(op.activation == Activation::silu ? cuda::silu_as_cpu(g) : gelu_tanh(g), u);
  if (row_scale != nullptr) v = __fmul_rn(v, row_scale[t]);
  out.set(t * out.row + i, v);
}

void run_gated(const GatedActivation& op, const GatedActivationArgs& args, Exec& exec) {
  check_gated_activation(op, args);
  if (args.gate.dim(0) == 0 || op.width == 0) return;
  gated_kernel<<<dim3(cuda::blocks_for(op.width, kThreads), static_cast<unsigned>(args.gate.dim(0))), kThreads, 0,
                 cuda::stream_of(exec)>>>(op, Rows(args.gate), Rows(args.up), args.row_scale, Rows(args.out));
  cuda::launched("gated_activation");
}

// ---- kv_append --------------------------------------------------------------------------------------------------

__global__ void kv_append_kernel(KvAppend op, Rows x, const int32_t* row_seq, const int32_t* row_pos,
                                 PagedRows plane) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int64_t t = blockIdx.y;
  if (i >= op.width) return;
  const int row = row_pos[t];
  const int64_t block = plane.block_table[int64_t{row_seq[t]} * plane.max_blocks + row / plane.rows_per_block];
  std::byte* to = plane.base + block * plane.block_bytes + plane.codes_offset +
                  int64_t{row % plane.rows_per_block} * row_code_bytes(plane.format, plane.width);
  const float v = x.get(t * x.row + i);
  if (op.format == RowFormat::f16)
    reinterpret_cast<__half*>(to)[i] = __float2half_rn(v);
  else if (op.format == RowFormat::bf16)
    reinterpret_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16_rn(v);
  else
    reinterpret_cast<float*>(to)[i] = v;
}

void run_kv_append(const KvAppend& op, const KvAppendArgs& args, Exec& exec) {
  check_kv_append(op, args);
  if (args.x.dim(0) == 0 || op.width == 0) return;
  kv_append_kernel<<<dim3(cuda::blocks_for(op.width, kThreads), static_cast<unsigned>(args.x.dim(0))), kThreads, 0,
                     cuda::stream_of(exec)>>>(op, Rows(args.x), args.row_seq, args.row_pos, args.plane);
  cuda::launched("kv_append");
}

// ---- row_gather: bytes, 4 at a time where they allow it
// ----------------------------------------------------------

template <class Unit>
__global__ void row_gather_kernel(const std::byte* x, int64_t x_row, const int32_t* index, bool scatter,
                                  std::byte* out, int64_t out_row, int units) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int64_t t = blockIdx.y, from = scatter ? t : index[t], to = scatter ? index[t] : t;
  if (i < units)
    reinterpret_cast<Unit*>(out + to * out_row)[i] = reinterpret_cast<const Unit*>(x + from * x_row)[i];
}

void run_row_gather(const RowGather& op, const RowGatherArgs& args, Exec& exec) {
  const int64_t bytes = row_gather_bytes(op, args);  // the indices are on the device and are not looked at
  if (args.index.empty() || bytes == 0) return;
  const int64_t size = dtype_bytes(args.x.dtype);
  const int64_t x_row = args.x.stride[0] * size, out_row = args.out.stride[0] * size;
  const bool words = bytes % 4 == 0 && x_row % 4 == 0 && out_row % 4 == 0 &&
                     reinterpret_cast<uintptr_t>(args.x.data) % 4 == 0 &&
                     reinterpret_cast<uintptr_t>(args.out.data) % 4 == 0;
  const auto units = static_cast<int>(words ? bytes / 4 : bytes);
  const dim3 grid(cuda::blocks_for(units, kThreads), static_cast<unsigned>(args.index.size()));
  auto kernel = words ? row_gather_kernel<uint32_t> : row_gather_kernel<uint8_t>;
  kernel<<<grid, kThreads, 0, cuda::stream_of(exec)>>>(args.x.data, x_row, args.index.data(), op.scatter,
                                                       args.out.data, out_row, units);
  cuda::launched("row_gather");
}

template <class Op>
bool fits(const Op&, const Machine& machine) {
  return cuda::on_device(machine);
}

}  // namespace

std::span<const RmsNormVariant> rms_norm_cuda() {
  static constexpr RmsNormVariant kVariants[] = {{"cuda", fits<RmsNorm>, run_rms_norm}};
  return kVariants;
}
std::span<const AddVariant> add_cuda() {
  static constexpr AddVariant kVariants[] = {{"cuda", fits<Add>, run_add}};
  return kVariants;
}
std::span<const GatedActivationVariant> gated_activation_cuda() {
  static constexpr GatedActivationVariant kVariants[] = {{"cuda", fits<GatedActivation>, run_gated}};
  return kVariants;
}
std::span<const KvAppendVariant> kv_append_cuda() {
  static constexpr KvAppendVariant kVariants[] = {{"cuda", fits<KvAppend>, run_kv_append}};
  return kVariants;
}
std::span<const RowGatherVariant> row_gather_cuda() {
  static constexpr RowGatherVariant kVariants[] = {{"cuda", fits<RowGather>, run_row_gather}};
  return kVariants;
}

}  // namespace gannet
