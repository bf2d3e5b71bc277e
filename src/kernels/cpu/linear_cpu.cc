// Splits a product over outputs and hands the parts to the inner loops of an instruction set.
#include <algorithm>

#include "kernels/args_check.h"
#include "kernels/cpu/linear_kernels.h"
#include "kernels/linear.h"

namespace gannet {
namespace {

constexpr int64_t kAlign = 64;

// Output rows that one thread dequantises at once: 128 KiB of fp32, which stays in the second-level cache.
int32_t scratch_rows(const Linear& op) {
  const int64_t rows = (int64_t{128} << 10) / std::max<int64_t>(int64_t{op.in} * 4, 1);
  return static_cast<int32_t>(std::clamp<int64_t>(rows / 4 * 4, 4, 64));
}

struct Job {
  const Linear& op;
  const LinearArgs& args;
  LinearKernels kernels;
  const float* x;  // fp32 [T, groups * in]
  int64_t x_stride;
  float* y;  // fp32 [T, groups * out]: the output itself, or a copy to be rounded
  int64_t y_stride;
  int32_t n_rows;

  // Outputs [begin, end) of all groups together.
  void outputs(int64_t begin, int64_t end, float* scratch) const {
    for (int64_t first = begin; first < end;) {
      const int64_t group = first / op.out;
      const int64_t n = std::min(end, (group + 1) * op.out) - first;
      const ProductRows rows{x + group * op.in, x_stride, n_rows, y + first, y_stride};
      const WeightRows w = weight_rows(args.weight, first, n);
      if (scratch == nullptr)
        kernels.direct(w, rows);
      else
        through_scratch(w, rows, scratch);
      first += n;
    }
    finish(begin, end);
  }

 private:
  void through_scratch(WeightRows w, ProductRows rows, float* scratch) const {
    const int32_t all = w.n_out, step = scratch_rows(op);
    for (int32_t first = 0; first < all; first += step) {
      w.n_out = std::min(step, all - first);
      if (op.format == WeightFormat::f32 && w.row_bytes % 4 == 0) {
        kernels.product(reinterpret_cast<const float*>(w.codes), w.row_bytes / 4, w.n_out, w.k, rows);
      } else {
        kernels.dequantize(w, scratch);
        kernels.product(scratch, w.k, w.n_out, w.k, rows);
      }
      w.codes += step * w.row_bytes;
      w.scale_first += step;
      rows.y += step;
    }
  }

  void finish(int64_t begin, int64_t end) const {
    if (args.bias == nullptr && op.y == DType::f32) return;
    for (int32_t t = 0; t < n_rows; ++t) {
      float* row = y + t * y_stride;
      if (args.bias != nullptr)
        for (int64_t o = begin; o < end; ++o) row[o] += args.bias[o];
      if (op.y != DType::bf16) continue;
      bf16* out = reinterpret_cast<bf16*>(row_at(args.y, t));
      for (int64_t o = begin; o < end; ++o) out[o] = to_bf16(row[o]);
    }
  }
};

const float* widen_rows(const View& x, float* out, Exec& exec) {
  const int64_t width = x.dim(1);
  exec.pool.parallel_for(x.dim(0), 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const auto* row = reinterpret_cast<const bf16*>(row_at(x, t));
      for (int64_t i = 0; i < width; ++i) out[t * width + i] = to_f32(row[i]);
    }
  });
  return out;
}

void run(const Linear& op, const LinearArgs& args, Exec& exec, const LinearKernels& kernels) {
  check_linear(op, args);
  const int64_t n_rows = args.x.dim(0), n_outs = int64_t{op.groups} * op.out;
  if (n_rows == 0 || n_outs == 0) return;
  const Arena::Scope scope(exec.arena);
  Job job{op,
          args,
          kernels,
          args.x.as<const float>(),
          args.x.stride[0],
          args.y.as<float>(),
          args.y.stride[0],
          static_cast<int32_t>(n_rows)};
  if (op.x == DType::bf16) {
    job.x_stride = int64_t{op.groups} * op.in;
    job.x = widen_rows(args.x, exec.arena.array<float>(n_rows * job.x_stride), exec);
  }
  if (op.y == DType::bf16) {
    job.y_stride = n_outs;
    job.y = exec.arena.array<float>(n_rows * n_outs);
  }
  const int64_t n_threads = exec.pool.size();
  const bool direct = n_rows <= kernels.direct_rows;
  // Four parts a thread even out what the system takes from one of them; a part keeps whole tiles.
  const int64_t part = (n_outs + 4 * n_threads - 1) / (4 * n_threads);
  const int64_t least = direct ? 32 : 16, most = direct ? 512 : scratch_rows(op);
  const int64_t grain = std::clamp((part + 15) / 16 * 16, least, std::max(least, most));
  const int64_t scratch_floats = direct ? 0 : int64_t{scratch_rows(op)} * op.in + kAlign / 4;
  float* scratch = direct ? nullptr : exec.arena.array<float>(scratch_floats * n_threads);
  exec.pool.parallel_chunks(n_outs, grain, [&](int thread, int64_t begin, int64_t end) {
    job.outputs(begin, end, direct ? nullptr : scratch + scratch_floats * thread);
  });
}

bool fits_avx512(const Linear&, const Machine& machine) { return machine.cpu.avx512; }
bool fits_avx2(const Linear&, const Machine& machine) { return machine.cpu.avx2; }
void run_avx512(const Linear& op, const LinearArgs& args, Exec& exec) {
  run(op, args, exec, linear_kernels_avx512(op.format));
}
void run_avx2(const Linear& op, const LinearArgs& args, Exec& exec) {
  run(op, args, exec, linear_kernels_avx2(op.format));
}

constexpr LinearVariant kVariants[] = {{"avx512", fits_avx512, run_avx512}, {"avx2", fits_avx2, run_avx2}};

}  // namespace

WeightRows weight_rows(const WeightView& weight, int64_t first, int64_t n) {
  const bool square = weight.format == WeightFormat::fp8_32x32;
  WeightRows rows;
  rows.codes = reinterpret_cast<const uint8_t*>(weight.codes) + first * weight.row_bytes;
  rows.row_bytes = weight.row_bytes;
  rows.scales = reinterpret_cast<const uint8_t*>(weight.scales);
  rows.scale_row_bytes = weight.scale_row_bytes;
  rows.scale_first = static_cast<int32_t>(first);
  rows.scale_shift = square ? 5 : 0;
  rows.n_out = static_cast<int32_t>(n);
  rows.k = weight.in;
  return rows;
}

std::span<const LinearVariant> linear_cpu() { return kVariants; }

int64_t linear_workspace_bytes(const Linear& op, int32_t rows, int32_t n_threads) {
  const int64_t x = op.x == DType::bf16 ? int64_t{rows} * op.groups * op.in * 4 : 0;
  const int64_t y = op.y == DType::bf16 ? int64_t{rows} * op.groups * op.out * 4 : 0;
  return x + y + (int64_t{scratch_rows(op)} * op.in * 4 + kAlign) * n_threads + 4 * kAlign;
}

}  // namespace gannet
