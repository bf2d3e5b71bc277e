#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/engram.h"
#include "kernels/row_io.h"
#include "kernels/tasks.h"

namespace gannet {
namespace {

constexpr int32_t kDead = -1;

void ids(const EngramIds& op, const EngramIdsArgs& args, Exec&) {
  auto* out = reinterpret_cast<int32_t*>(args.ids.codes);
  for (int32_t t = 0; t < args.ids.n; ++t) {
    const int32_t token = args.row_token[t];
    const bool dead = (args.row_flags[t] & args.dead_flag) != 0;
    GANNET_CHECK(dead || (token >= 0 && token < op.n_tokens), "token {} of {}", token, op.n_tokens);
    out[t] = dead ? kDead : args.token_map[token];
    args.ids.tags[t] = args.row_pos[t];
  }
}

int32_t id_at(const RecentRows& rows, int32_t seq, int32_t pos) {
  int32_t id;
  std::memcpy(&id, recent_row(rows, seq, pos).codes, sizeof id);
  return id;
}

void hash(const EngramHash& op, const EngramHashArgs& args, Exec& exec) {
  const int64_t columns = int64_t{op.max_ngram - 1} * op.heads;
  exec.pool.parallel_for(args.n_rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t* out = args.row_ids + t * columns;
      uint64_t mixed = 0;
      bool blocked = false;
      for (int32_t i = 0; i < op.max_ngram; ++i) {
        const int32_t pos = args.row_pos[t] - i;
        const int32_t id = blocked || pos < 0 ? kDead : id_at(args.ids, args.row_seq[t], pos);
        blocked = id == kDead;
        mixed ^= static_cast<uint64_t>(blocked ? op.pad : id) * args.multiplier[i];
        for (int32_t e = 0; i > 0 && e < op.heads; ++e) {
          const int32_t column = (i - 1) * op.heads + e;
          out[column] = static_cast<int64_t>(mixed % args.prime[column] + args.offset[column]);
        }
      }
    }
  });
}

void gather(const EngramGather& op, const EngramGatherArgs& args, Exec& exec) {
  const Arena::Scope scope(exec.arena);
  float* scratch = exec.arena.array<float>(int64_t{exec.pool.size()} * op.width);
  for_each_task(exec, args.out.dim(0), [&](int64_t t, int thread) {
    float* values = scratch + int64_t{thread} * op.width;
    const int64_t from = args.row_index == nullptr ? t : args.row_index[t];
    for (int64_t c = 0; c < op.columns; ++c) {
      const int64_t row = args.row_ids[from * op.columns + c];
      GANNET_CHECK(row >= 0 && row < args.table.out, "row {} of {}", row, args.table.out);
      dequantize(args.table, row, 0, op.width, values);
      write_row(values, args.out, t, c * op.width, op.width);
    }
  });
}

void gate_stream(const EngramGate& op, const float* qk, const float* key, const float* value, bool dead, float* h) {
  double hh = 0, kk = 0, dot = 0;
  for (int32_t c = 0; c < op.width; ++c) {
    hh += double{h[c]} * double{h[c]};
    kk += double{key[c]} * double{key[c]};
    dot += double{h[c]} * double{qk[c]} * double{key[c]};
  }
  const double n = op.width, eps = double{op.eps};
  dot *= 1 / std::sqrt(hh / n + eps) * (1 / std::sqrt(kk / n + eps)) / std::sqrt(n);
  const double z = std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6)), dot);
  const double g = dead ? 0 : 1 / (1 + std::exp(-z));
  for (int32_t c = 0; c < op.width; ++c) h[c] = static_cast<float>(double{h[c]} + g * double{value[c]});
}

void gate(const EngramGate& op, const EngramGateArgs& args, Exec& exec) {
  const Arena::Scope scope(exec.arena);
  const int64_t C = op.width;
  float* scratch = exec.arena.array<float>(exec.pool.size() * 4 * C);
  for_each_task(exec, args.h.dim(0), [&](int64_t t, int thread) {
    float* key = scratch + thread * 4 * C;
    float *value = key + C, *h = key + 2 * C, *qk = key + 3 * C;
    read_row(args.kv, t, op.streams * C, C, value);
    const bool dead = (args.row_flags[t] & args.dead_flag) != 0;
    for (int64_t s = 0; s < op.streams; ++s) {
      read_row(args.kv, t, s * C, C, key);
      read_row(args.h, t, s * C, C, h);
      for (int64_t c = 0; c < C; ++c) qk[c] = args.q[s * C + c] * args.k[s * C + c];
      gate_stream(op, qk, key, value, dead, h);
      write_row(h, args.h, t, s * C, C);
    }
  });
}

template <class Op>
bool always(const Op&, const Machine&) {
  return true;
}

constexpr Variant<EngramIds, EngramIdsArgs> kIds[] = {{"ref", always<EngramIds>, ids}};
constexpr Variant<EngramHash, EngramHashArgs> kHash[] = {{"ref", always<EngramHash>, hash}};
constexpr Variant<EngramGather, EngramGatherArgs> kGather[] = {{"ref", always<EngramGather>, gather}};
constexpr Variant<EngramGate, EngramGateArgs> kGate[] = {{"ref", always<EngramGate>, gate}};

}  // namespace

std::span<const Variant<EngramIds, EngramIdsArgs>> engram_ids_ref() { return kIds; }
std::span<const Variant<EngramHash, EngramHashArgs>> engram_hash_ref() { return kHash; }
std::span<const Variant<EngramGather, EngramGatherArgs>> engram_gather_ref() { return kGather; }
std::span<const Variant<EngramGate, EngramGateArgs>> engram_gate_ref() { return kGate; }

}  // namespace gannet
