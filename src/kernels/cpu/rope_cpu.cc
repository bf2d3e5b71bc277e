// For every x86-64 CPU: the rotation is a sliver of a step, and the compiler vectorises it well enough.
#include "kernels/args_check.h"
#include "kernels/cpu/row_split.h"
#include "kernels/rope.h"

namespace gannet {
namespace {

// One head; table holds n_pairs x {cos, sin}. `step` separates the two channels of a pair, `next` one pair from the
// next.
template <class Load, class Store>
void rotate(const float* table, int32_t n_pairs, int32_t step, int32_t next, float sign, const Load& load,
            const Store& store) {
  for (int32_t i = 0; i < n_pairs; ++i) {
    const float cosine = table[2 * i], sine = sign * table[2 * i + 1];
    const float a = load(i * next), b = load(i * next + step);
    store(i * next, a * cosine - b * sine);
    store(i * next + step, a * sine + b * cosine);
  }
}

void rotate_head(const Rope& op, std::byte* head, const float* table) {
  const int32_t n_pairs = op.rotary / 2;
  const int32_t step = op.interleaved ? 1 : n_pairs, next = op.interleaved ? 2 : 1;
  const float sign = op.inverse ? -1.0f : 1.0f;
  if (op.x == DType::bf16) {
    bf16* x = reinterpret_cast<bf16*>(head) + op.begin;
    rotate(
        table, n_pairs, step, next, sign, [x](int32_t i) { return to_f32(x[i]); },
        [x](int32_t i, float v) { x[i] = to_bf16(v); });
  } else {
    float* x = reinterpret_cast<float*>(head) + op.begin;
    rotate(
        table, n_pairs, step, next, sign, [x](int32_t i) { return x[i]; }, [x](int32_t i, float v) { x[i] = v; });
  }
}

void run(const Rope& op, const RopeArgs& args, Exec& exec) {
  check_rope(op, args);
  const Arena::Scope scope(exec.arena);
  const int64_t n_rows = args.x.dim(0), row_floats = op.rotary;
  const float* table = args.table;
  if (table == nullptr) {
    float* made = exec.arena.array<float>(n_rows * row_floats);
    rope_table(args.pos, static_cast<int32_t>(n_rows), args.frequency, op.rotary / 2, made, exec);
    table = made;
  }
  for_rows(exec, n_rows, int64_t{op.heads} * op.rotary * 2, [&](int64_t t) {
    for (int32_t h = 0; h < op.heads; ++h) rotate_head(op, head_at(args.x, t, h), table + t * row_floats);
  });
}

constexpr RopeVariant kVariants[] = {{"table", [](const Rope&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const RopeVariant> rope_cpu() { return kVariants; }

}  // namespace gannet
