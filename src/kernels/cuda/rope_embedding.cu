// `rope` with its table, and `embedding`, with the operations of the CPU. cos and sin come from the double
// functions of the device's library, rounded once: they differ from the host's only where the exact value lies
// within 2^-52 of the middle between two floats.
#include "kernels/cuda/weight_lanes.cuh"
#include "kernels/embedding.h"
#include "kernels/rope.h"

namespace gannet {
namespace {

using cuda::Rows;

constexpr int kThreads = 128;

__device__ inline void angle_of(const int32_t* pos, const float* frequency, int64_t t, int i, float& cosine,
                                float& sine) {
  double s = 0, c = 0;
  sincos(static_cast<double>(__fmul_rn(static_cast<float>(pos[t]), frequency[i])), &s, &c);
  cosine = static_cast<float>(c);
  sine = static_cast<float>(s);
}

__global__ void table_kernel(const int32_t* pos, const float* frequency, int n_pairs, float* table) {
  const int64_t t = blockIdx.x;
  for (int i = threadIdx.x; i < n_pairs; i += kThreads)
    angle_of(pos, frequency, t, i, table[(t * n_pairs + i) * 2], table[(t * n_pairs + i) * 2 + 1]);
}

__global__ void rope_kernel(Rope op, Rows x, const int32_t* pos, const float* frequency, const float* table) {
  const int64_t t = blockIdx.x;
  const int n_pairs = op.rotary / 2;
  for (int at = threadIdx.x; at < n_pairs * op.heads; at += kThreads) {
    const int i = at % n_pairs, h = at / n_pairs;
    float cosine, sine;
    if (table != nullptr) {
      cosine = table[(t * n_pairs + i) * 2];
      sine = table[(t * n_pairs + i) * 2 + 1];
    } else {
      angle_of(pos, frequency, t, i, cosine, sine);
    }
    if (op.inverse) sine = -sine;
    const int64_t head = t * x.row + h * x.head + op.begin;
    const int64_t first = head + (op.interleaved ? 2 * i : i), second = first + (op.interleaved ? 1 : n_pairs);
    const float a = x.get(first), b = x.get(second);
    x.set(first, __fsub_rn(__fmul_rn(a, cosine), __fmul_rn(b, sine)));
    x.set(second, __fadd_rn(__fmul_rn(a, sine), __fmul_rn(b, cosine)));
  }
}

void run_rope(const Rope& op, const RopeArgs& args, Exec& exec) {
  check_rope(op, args);
  if (args.x.dim(0) * op.rotary * op.heads == 0) return;
  rope_kernel<<<static_cast<unsigned>(args.x.dim(0)), kThreads, 0, cuda::stream_of(exec)>>>(
      op, Rows(args.x), args.pos, args.frequency, args.table);
  cuda::launched("rope");
}

template <WeightFormat F>
__global__ void embedding_kernel(WeightView table, const int32_t* token, const int32_t* row_embed,
                                 const float* embeds, int64_t embeds_row, float scale, Rows out) {
  const int64_t t = blockIdx.x;
  const int embed = row_embed != nullptr ? row_embed[t] : -1, width = table.in;
  const int64_t row = embed < 0 ? token[t] : 0;
  const std::byte* codes = table.codes + row * table.row_bytes;
  const std::byte* scales = table.scales + (F == WeightFormat::fp8_32x32 ? row / 32 : row) * table.scale_row_bytes;
  for (int at = threadIdx.x; at < (width + 31) / 32 * 16; at += kThreads) {
    const int b = at / 16, j = at % 16;
    float w[2];
    if (embed < 0) cuda::lane_pair<F>(codes, scales, b, j, width, w);
    for (int h = 0; h < 2; ++h) {
      const int k = 32 * b + 16 * h + j;
      if (k < width) out.set(t * out.row + k, embed < 0 ? __fmul_rn(w[h], scale) : embeds[embed * embeds_row + k]);
    }
  }
}

void run_embedding(const Embedding& op, const EmbeddingArgs& args, Exec& exec) {
  check_matrix(args.out, args.out.dim(0), op.width, op.out);  // tokens are on the device and are not looked at
  GANNET_CHECK(args.table.format == op.format && args.table.in == op.width, "table [{}, {}] of format {}",
               args.table.out, args.table.in, static_cast<int>(args.table.format));
  if (args.out.dim(0) == 0 || op.width == 0) return;
  cuda::with_lane_format(op.format, [&](auto format) {
    embedding_kernel<decltype(format)::value>
        <<<static_cast<unsigned>(args.out.dim(0)), kThreads, 0, cuda::stream_of(exec)>>>(
            args.table, args.token, args.row_embed, args.embeds.as<float>(), args.embeds.stride[0], op.scale,
            Rows(args.out));
  });
  cuda::launched("embedding");
}

}  // namespace

std::span<const RopeVariant> rope_cuda() {
  static constexpr RopeVariant kVariants[] = {
      {"cuda", [](const Rope&, const Machine& m) { return cuda::on_device(m); }, run_rope}};
  return kVariants;
}

void rope_table_cuda(const int32_t* pos, int32_t n_rows, const float* frequency, int32_t n_pairs, float* table,
                     Exec& exec) {
  if (n_rows == 0) return;
  table_kernel<<<static_cast<unsigned>(n_rows), kThreads, 0, cuda::stream_of(exec)>>>(pos, frequency, n_pairs,
                                                                                      table);
  cuda::launched("rope_table");
}

std::span<const EmbeddingVariant> embedding_cuda() {
  static constexpr EmbeddingVariant kVariants[] = {{"cuda",
                                                    [](const Embedding& op, const Machine& m) {
                                                      return cuda::on_device(m) &&
                                                             cuda::with_lane_format(op.format, [](auto) {});
                                                    },
                                                    run_embedding}};
  return kVariants;
}

}  // namespace gannet
