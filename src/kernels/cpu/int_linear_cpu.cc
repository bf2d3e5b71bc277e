// Splits integer products over outputs and hands the parts to the inner loops of an instruction set.
#include <algorithm>

#include "kernels/args_check.h"
#include "kernels/cpu/int_linear_kernels.h"
#include "kernels/cpu/row_split.h"
#include "kernels/int_linear.h"

namespace gannet {
namespace {

struct Job {
  const IntLinear& op;
  const IntLinearArgs& args;
  IntKernels kernels[kIntParts];
  bool direct = false;

  // Outputs [begin, end) of part i.
  void outputs(int i, int64_t begin, int64_t end, std::byte* scratch) const {
    const IntLinearArgs::Part& part = args.part[i];
    const IntRowsView& x = args.x;
    const IntWeightRows w{reinterpret_cast<const uint8_t*>(part.weight.codes) + begin * part.weight.row_bytes,
                          part.weight.row_bytes, static_cast<int32_t>(end - begin), op.in / kIntBlock};
    const IntProduct p{x.q,  x.scale, x.shift, static_cast<int32_t>(x.n_rows), part.y.as<float>() + begin,
                       part.y.stride[0]};
    if (direct)
      kernels[i].direct(w, p);
    else
      kernels[i].packed(w, p, scratch);
    if (part.bias == nullptr) return;
    for (int64_t t = 0; t < x.n_rows; ++t) {
      float* row = reinterpret_cast<float*>(row_at(part.y, t));
      for (int64_t o = begin; o < end; ++o) row[o] += part.bias[o];
    }
  }
};

void run_avx2(const IntLinear& op, const IntLinearArgs& args, Exec& exec) {
  check_int_linear(op, args);
  if (args.x.n_rows == 0) return;
  const Arena::Scope scope(exec.arena);
  Job job{op, args, {}, true};
  // Units of kIntPanel outputs, those of all parts in a row.
  int64_t first[kIntParts + 1] = {};
  for (int i = 0; i < op.n_parts; ++i) {
    job.kernels[i] = int_kernels_avx2(op.part[i].format);
    job.direct = job.direct && args.x.n_rows <= job.kernels[i].direct_rows;
    first[i + 1] = first[i] + (op.part[i].out + kIntPanel - 1) / kIntPanel;
  }
  const int64_t n_units = first[op.n_parts], n_threads = exec.pool.size();
  std::byte* scratch = job.direct ? nullptr : exec.arena.allocate(kIntPanelBytes * n_threads);
  // Eight parts a thread even out what the system takes from one of them.
  const int64_t grain = std::clamp<int64_t>(n_units / (8 * n_threads), 1, 32);
  exec.pool.parallel_chunks(n_units, grain, [&](int thread, int64_t begin, int64_t end) {
    for (int i = 0; i < op.n_parts; ++i) {
      const int64_t from = std::max(begin, first[i]), to = std::min(end, first[i + 1]);
      if (from >= to) continue;
      job.outputs(i, (from - first[i]) * kIntPanel, std::min<int64_t>((to - first[i]) * kIntPanel, op.part[i].out),
                  scratch + (job.direct ? 0 : kIntPanelBytes * thread));
    }
  });
}

void rows_avx2(const IntRows& op, const IntRowsArgs& args, Exec& exec) {
  check_int_rows(op, args);
  const int32_t n_blocks = op.width / kIntBlock;
  for_rows(exec, args.out.n_rows, op.width, [&](int64_t t) {
    int_row_avx2(reinterpret_cast<const float*>(row_at(args.x, t)), n_blocks, args.out.q + t * op.width,
                 args.out.scale + t * n_blocks, args.out.shift + t * n_blocks);
  });
}

constexpr IntLinearVariant kVariants[] = {
    {"avx2", [](const IntLinear&, const Machine& machine) { return machine.cpu.avx2; }, run_avx2}};
constexpr IntRowsVariant kRowVariants[] = {
    {"avx2", [](const IntRows&, const Machine& machine) { return machine.cpu.avx2; }, rows_avx2}};

}  // namespace

std::span<const IntLinearVariant> int_linear_cpu() { return kVariants; }
std::span<const IntRowsVariant> int_rows_cpu() { return kRowVariants; }

int64_t int_linear_workspace_bytes(const IntLinear&, int32_t n_threads) {
  return kIntPanelBytes * n_threads + 64;
}

}  // namespace gannet
