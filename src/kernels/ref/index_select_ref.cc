#include <algorithm>

#include "kernels/compressor.h"
#include "kernels/index_select.h"
#include "kernels/row_codec.h"
#include "kernels/row_io.h"
#include "kernels/tasks.h"

namespace gannet {
namespace {

struct Scorer final : ScoreRows {
  const IndexSelect& op;
  const IndexSelectArgs& args;
  float* query;   // [H * w]
  float* weight;  // [H]
  float* key;     // [w]
  Scorer(const IndexSelect& o, const IndexSelectArgs& a, float* scratch)
      : op(o), args(a), query(scratch), weight(query + int64_t{op.heads} * op.width), key(weight + op.heads) {}

  void operator()(int64_t t, int32_t seq, int32_t begin, int32_t n, float* scores) override {
    read_row(args.query, t, 0, int64_t{op.heads} * op.width, query);
    read_row(args.weight, t, 0, op.heads, weight);
    for (int32_t j = 0; j < n; ++j) {
      const PagedRowBytes from = paged_row(args.keys, seq, begin + j);
      decode_row(args.keys.format, from.codes, from.scales, op.width, key);
      double score = 0;
      for (int32_t h = 0; h < op.heads; ++h) {
        double dot = 0;
        for (int32_t c = 0; c < op.width; ++c) dot += double{query[int64_t{h} * op.width + c]} * double{key[c]};
        score += double{weight[h] * op.weight_scale} * std::max(dot, 0.0);
      }
      scores[j] = static_cast<float>(score);
    }
  }
};

void run(const IndexSelect& op, const IndexSelectArgs& args, Exec& exec) {
  GANNET_CHECK(args.keys.width == op.width && args.keys.format == op.keys, "keys of {} channels", args.keys.width);
  const Arena::Scope scope(exec.arena);
  const int64_t rows = (int64_t{args.max_pos} + 1) / op.ratio + 1;
  const int64_t scratch_floats = int64_t{op.heads} * (op.width + 1) + op.width;
  auto* keys = exec.arena.array<uint64_t>(exec.pool.size() * rows);
  auto* scores = exec.arena.array<float>(exec.pool.size() * rows);
  auto* scratch = exec.arena.array<float>(exec.pool.size() * scratch_floats);
  for_each_task(exec, args.query.dim(0), [&](int64_t t, int thread) {
    Scorer score(op, args, scratch + thread * scratch_floats);
    select_row(op, args, t, score, {scores + thread * rows, keys + thread * rows});
  });
}

constexpr IndexSelectVariant kVariants[] = {{"ref", [](const IndexSelect&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const IndexSelectVariant> index_select_ref() { return kVariants; }

}  // namespace gannet
