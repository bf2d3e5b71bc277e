#include <algorithm>

#include "kernels/compressor.h"
#include "kernels/cpu/sparse_kernels.h"
#include "kernels/index_select.h"
#include "kernels/row_io.h"
#include "kernels/tasks.h"

namespace gannet {
namespace {

constexpr int32_t kTile = 16;  // keys decoded at a time

class Scorer final : public ScoreRows {
 public:
  static int64_t scratch_floats(const IndexSelect& op) {
    return int64_t{op.heads} * op.width + 2 * padded(op.heads) + int64_t{kTile} * op.width;
  }
  Scorer(const SparseKernels& kernels, const IndexSelect& op, const IndexSelectArgs& args, int64_t t,
         float* scratch)
      : kernels_(kernels),
        op_(op),
        args_(args),
        query_(scratch),
        weight_(query_ + int64_t{op.heads} * op.width),
        dots_(weight_ + padded(op.heads)),
        keys_(dots_ + padded(op.heads)),
        t_(t) {}

  void operator()(int64_t, int32_t seq, int32_t begin, int32_t n, float* scores) override {
    if (!loaded_) load();
    for (int32_t at = 0; at < n; at += kTile) {
      const int32_t some = std::min(kTile, n - at);
      for (int32_t j = 0; j < some; ++j) {
        const PagedRowBytes from = paged_row(args_.keys, seq, begin + at + j);
        kernels_.decode(args_.keys.format, from.codes, from.scales, op_.width, keys_ + int64_t{j} * op_.width);
      }
      kernels_.score(query_, weight_, op_.heads, keys_, some, op_.width, dots_, scores + at);
    }
  }

 private:
  static int64_t padded(int32_t heads) { return (int64_t{heads} + 15) / 16 * 16; }
  void load() {
    read_row(args_.query, t_, 0, int64_t{op_.heads} * op_.width, query_);
    read_row(args_.weight, t_, 0, op_.heads, weight_);
    for (int32_t h = 0; h < op_.heads; ++h) weight_[h] *= op_.weight_scale;
    loaded_ = true;
  }
  const SparseKernels& kernels_;
  const IndexSelect& op_;
  const IndexSelectArgs& args_;
  float *query_, *weight_, *dots_, *keys_;
  int64_t t_;
  bool loaded_ = false;
};

void run(const SparseKernels& kernels, const IndexSelect& op, const IndexSelectArgs& args, Exec& exec) {
  GANNET_CHECK(args.keys.width == op.width && args.keys.format == op.keys, "keys of {} channels", args.keys.width);
  const Arena::Scope scope(exec.arena);
  const int64_t rows = (int64_t{args.max_pos} + 1) / op.ratio + 1, scratch_floats = Scorer::scratch_floats(op);
  auto* keys = exec.arena.array<uint64_t>(exec.pool.size() * rows);
  auto* scores = exec.arena.array<float>(exec.pool.size() * rows);
  auto* scratch = exec.arena.array<float>(exec.pool.size() * scratch_floats);
  for_each_task(exec, args.query.dim(0), [&](int64_t t, int thread) {
    Scorer score(kernels, op, args, t, scratch + thread * scratch_floats);
    select_row(op, args, t, score, {scores + thread * rows, keys + thread * rows});
  });
}

template <bool kAvx512>
bool fits(const IndexSelect& op, const Machine& machine) {
  return has_sparse_kernels(machine, op.width) && (!kAvx512 || machine.cpu.avx512);
}
template <bool kAvx512>
void run_with(const IndexSelect& op, const IndexSelectArgs& args, Exec& exec) {
  run(sparse_kernels(kAvx512), op, args, exec);
}

constexpr IndexSelectVariant kVariants[] = {{"avx512", fits<true>, run_with<true>},
                                            {"avx2", fits<false>, run_with<false>}};

}  // namespace

std::span<const IndexSelectVariant> index_select_cpu() { return kVariants; }

}  // namespace gannet
