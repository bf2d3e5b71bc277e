// Splits attention over rows, kv heads and, where those are few, cuts of the keys.
#include <algorithm>
#include <cmath>

#include "kernels/args_check.h"
#include "kernels/attention_gqa.h"
#include "kernels/cpu/attention_kernels.h"

namespace gannet {
namespace {

constexpr int32_t kMostQueries = 64;  // queries that share one pass over keys and values

int32_t rows_together(const AttentionGqa& op) { return std::max(1, kMostQueries / (op.heads / op.kv_heads)); }

// What one thread works in, and its size.
struct Scratch {
  float *q, *scores, *tile, *parts, *totals, *out;
  const std::byte **key, **value;
  int32_t *begin, *end;

  static int64_t bytes(const AttentionGqa& op) {
    const int64_t rows = rows_together(op), queries = rows * (op.heads / op.kv_heads);
    const int64_t floats = queries * (op.head_dim + kCutKeys + 2 * part_floats(op.head_dim)) +
                           kAttentionTile * op.head_dim + op.head_dim;
    return (floats * 4 + 2 * kCutKeys * 8 + 2 * rows * 4 + 63) / 64 * 64;
  }
  Scratch(const AttentionGqa& op, std::byte* at) {
    const int64_t rows = rows_together(op), queries = rows * (op.heads / op.kv_heads);
    const auto take = [&at](auto*& pointer, int64_t n) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at);
      at += n * static_cast<int64_t>(sizeof *pointer);
    };
    take(key, kCutKeys);
    take(value, kCutKeys);
    take(q, queries * op.head_dim);
    take(scores, queries * kCutKeys);
    take(parts, queries * part_floats(op.head_dim));
    take(totals, queries * part_floats(op.head_dim));
    take(tile, int64_t{kAttentionTile} * op.head_dim);
    take(out, op.head_dim);
    take(begin, rows);
    take(end, rows);
  }
};

// Rows [first, first + n) of one sequence, in rising position.
struct Block {
  int32_t first, n;
};

struct Job {
  const AttentionGqa& op;
  const AttentionGqaArgs& args;
  const AttentionKernels& kernels;

  int32_t group() const { return op.heads / op.kv_heads; }
  int32_t first_key(int64_t t) const { return op.window > 0 ? std::max(0, args.row_pos[t] - op.window + 1) : 0; }
  int32_t first_cut(const Block& b) const { return first_key(b.first) / kCutKeys; }
  int32_t last_cut(const Block& b) const { return args.row_pos[b.first + b.n - 1] / kCutKeys; }

  void load_queries(const Block& b, int32_t kv_head, float* q) const {
    for (int32_t r = 0; r < b.n; ++r)
      for (int32_t h = 0; h < group(); ++h) {
        const std::byte* from = head_at(args.q, b.first + r, kv_head * group() + h);
        for (int32_t i = 0; i < op.head_dim; ++i) *q++ = load_element(from, op.q, i);
      }
  }

  // Addresses of rows [begin, end) of a plane, counted from position `origin`.
  void row_addresses(const PagedRows& plane, int32_t seq, int32_t origin, int32_t begin, int32_t end,
                     int32_t kv_head, const std::byte** out) const {
    const int64_t row_bytes = row_code_bytes(plane.format, plane.width);
    const int64_t offset = plane.codes_offset + row_bytes / op.kv_heads * kv_head;
    for (int32_t j = begin; j < end;) {
      const int32_t row = origin + j, slot = row / plane.rows_per_block, at = row % plane.rows_per_block;
      GANNET_CHECK(slot < plane.max_blocks, "position {} beyond {} blocks of {}", row, plane.max_blocks,
                   plane.rows_per_block);
      const int64_t block = plane.block_table[int64_t{seq} * plane.max_blocks + slot];
      const std::byte* from = plane.base + block * plane.block_bytes + offset + at * row_bytes;
      const int32_t n = std::min(plane.rows_per_block - at, end - j);
      for (int32_t i = 0; i < n; ++i) out[j + i] = from + i * row_bytes;
      j += n;
    }
  }

  // One cut for the queries in s.q, to `parts`.
  void one_cut(const Block& b, int32_t kv_head, int32_t cut, const Scratch& s, float* parts) const {
    const int32_t origin = cut * kCutKeys, seq = args.row_seq[b.first];
    int32_t begin = kCutKeys, end = 0;
    for (int32_t r = 0; r < b.n; ++r) {
      s.begin[r] = std::max(0, first_key(b.first + r) - origin);
      s.end[r] = std::min(kCutKeys, args.row_pos[b.first + r] + 1 - origin);
      if (s.begin[r] >= s.end[r]) continue;
      begin = std::min(begin, s.begin[r]);
      end = std::max(end, s.end[r]);
    }
    row_addresses(args.key, seq, origin, begin, end, kv_head, s.key);
    row_addresses(args.value, seq, origin, begin, end, kv_head, s.value);
    kernels.cut({s.q, b.n, group(), op.head_dim, s.begin, s.end, s.key, s.value, op.format, op.scale, s.scores,
                 s.tile, parts});
  }

  static void clear(float* total, int32_t head_dim) {
    std::fill(total, total + part_floats(head_dim), 0.0f);
    total[0] = -INFINITY;
  }

  void write(int64_t t, int32_t head, const float* total, float* buffer) const {
    kernels.finish(total, buffer, op.head_dim);
    for (int32_t i = 0; i < op.head_dim; ++i) store_element(head_at(args.out, t, head), op.out, i, buffer[i]);
  }

  // All cuts of a block's rows for one kv head.
  void whole(const Block& b, int32_t kv_head, const Scratch& s) const {
    const int32_t stride = part_floats(op.head_dim);
    load_queries(b, kv_head, s.q);
    for (int32_t i = 0; i < b.n * group(); ++i) clear(s.totals + int64_t{i} * stride, op.head_dim);
    for (int32_t cut = first_cut(b); cut <= last_cut(b); ++cut) {
      one_cut(b, kv_head, cut, s, s.parts);
      for (int32_t i = 0; i < b.n * group(); ++i)
        if (s.begin[i / group()] < s.end[i / group()])
          kernels.merge(s.totals + int64_t{i} * stride, s.parts + int64_t{i} * stride, op.head_dim);
    }
    for (int32_t i = 0; i < b.n * group(); ++i)
      write(b.first + i / group(), kv_head * group() + i % group(), s.totals + int64_t{i} * stride, s.out);
  }
};

int32_t make_blocks(const AttentionGqaArgs& args, int32_t n_rows, int32_t most, Block* blocks) {
  int32_t n = 0;
  for (int32_t t = 0; t < n_rows; ++t) {
    const bool joins = n > 0 && blocks[n - 1].n < most && args.row_seq[t] == args.row_seq[t - 1] &&
                       args.row_pos[t] > args.row_pos[t - 1];
    if (joins)
      ++blocks[n - 1].n;
    else
      blocks[n++] = {t, 1};
  }
  return n;
}

// Few rows against many keys: every cut is a piece of work, then each query's parts are merged in order.
void run_by_cuts(const Job& job, Exec& exec, const Block* blocks, int32_t n_blocks, std::byte* scratch) {
  const AttentionGqa& op = job.op;
  const int32_t group = job.group(), n_cuts = job.args.max_pos / kCutKeys + 1, stride = part_floats(op.head_dim);
  const int64_t scratch_bytes = Scratch::bytes(op), cut_floats = int64_t{group} * stride;
  float* parts = exec.arena.array<float>(int64_t{n_blocks} * op.kv_heads * n_cuts * cut_floats);
  exec.pool.parallel_chunks(int64_t{n_blocks} * op.kv_heads * n_cuts, 1,
                            [&](int thread, int64_t begin, int64_t end) {
                              const Scratch s(op, scratch + thread * scratch_bytes);
                              for (int64_t i = begin; i < end; ++i) {
                                const Block& b = blocks[i / n_cuts / op.kv_heads];
                                const auto kv_head = static_cast<int32_t>(i / n_cuts % op.kv_heads),
                                           cut = static_cast<int32_t>(i % n_cuts);
                                if (cut < job.first_cut(b) || cut > job.last_cut(b)) continue;
                                job.load_queries(b, kv_head, s.q);
                                job.one_cut(b, kv_head, cut, s, parts + i * cut_floats);
                              }
                            });
  const Scratch s(op, scratch);
  for (int64_t i = 0; i < int64_t{n_blocks} * op.heads; ++i) {
    const Block& b = blocks[i / op.heads];
    const auto head = static_cast<int32_t>(i % op.heads);
    Job::clear(s.totals, op.head_dim);
    for (int32_t cut = job.first_cut(b); cut <= job.last_cut(b); ++cut) {
      const int64_t unit = (i / op.heads * op.kv_heads + head / group) * n_cuts + cut;
      job.kernels.merge(s.totals, parts + unit * cut_floats + int64_t{head % group} * stride, op.head_dim);
    }
    job.write(b.first, head, s.totals, s.out);
  }
}

bool by_cuts(const AttentionGqa& op, int32_t n_rows, int32_t max_pos, int32_t n_threads) {
  return int64_t{n_rows} * op.kv_heads < 4 * int64_t{n_threads} && max_pos >= kCutKeys && n_threads > 1;
}

void run(const AttentionGqa& op, const AttentionGqaArgs& args, Exec& exec, const AttentionKernels& kernels) {
  check_attention_gqa(op, args);
  const auto n_rows = static_cast<int32_t>(args.q.dim(0));
  if (n_rows == 0) return;
  const Arena::Scope scope(exec.arena);
  const Job job{op, args, kernels};
  const int64_t scratch_bytes = Scratch::bytes(op);
  std::byte* scratch = exec.arena.allocate(scratch_bytes * exec.pool.size());
  Block* blocks = exec.arena.array<Block>(n_rows);
  const bool cuts = by_cuts(op, n_rows, args.max_pos, exec.pool.size());
  const int32_t n_blocks = make_blocks(args, n_rows, cuts ? 1 : rows_together(op), blocks);
  if (cuts) return run_by_cuts(job, exec, blocks, n_blocks, scratch);
  exec.pool.parallel_chunks(int64_t{n_blocks} * op.kv_heads, 1, [&](int thread, int64_t begin, int64_t end) {
    const Scratch s(op, scratch + thread * scratch_bytes);
    for (int64_t i = begin; i < end; ++i)
      job.whole(blocks[i / op.kv_heads], static_cast<int32_t>(i % op.kv_heads), s);
  });
}

bool shape_fits(const AttentionGqa& op) { return op.head_dim % 16 == 0 && op.head_dim <= 512; }

constexpr AttentionGqaVariant kVariants[] = {
    {"avx512", [](const AttentionGqa& op, const Machine& machine) { return machine.cpu.avx512 && shape_fits(op); },
     [](const AttentionGqa& op, const AttentionGqaArgs& args, Exec& exec) {
       run(op, args, exec, attention_kernels_avx512);
     }},
    {"avx2", [](const AttentionGqa& op, const Machine& machine) { return machine.cpu.avx2 && shape_fits(op); },
     [](const AttentionGqa& op, const AttentionGqaArgs& args, Exec& exec) {
       run(op, args, exec, attention_kernels_avx2);
     }},
};

}  // namespace

std::span<const AttentionGqaVariant> attention_gqa_cpu() { return kVariants; }

int64_t attention_gqa_workspace_bytes(const AttentionGqa& op, int32_t rows, int32_t max_pos, int32_t n_threads) {
  const int64_t n_cuts = max_pos / kCutKeys + 1;
  // At most by_cuts() lets so many rows be split.
  const int64_t split_rows = std::min<int64_t>(rows, 4 * int64_t{n_threads} / op.kv_heads + 1);
  const int64_t parts = split_rows * op.heads * n_cuts * part_floats(op.head_dim) * 4;
  const int64_t scores = 8 * (int64_t{max_pos} + 1) * n_threads;  // the reference's
  return std::max(scores, Scratch::bytes(op) * n_threads + int64_t{rows} * 8 + parts) + 256;
}

}  // namespace gannet
