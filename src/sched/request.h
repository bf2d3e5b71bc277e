// What the scheduler knows of a request, and what it plans for one step. Plain data; host only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kv/index/block_key.h"
#include "kv/index/block_pool.h"

namespace gannet::sched {

enum class RequestId : int64_t {};

struct Request {
  RequestId id{};
  std::vector<int32_t> prompt;  // at least one token
  int32_t max_tokens = 1;       // sampled at most, at least one
  int32_t priority = 0;         // higher goes first
  std::string tenant;           // fairness is between tenants
  kv::BlockKey root{};          // where its chain of block keys begins (kv/index/block_key.h)
};

// Rows of one sequence in one step: positions first_pos .. first_pos + n_rows - 1.
struct Chunk {
  RequestId request{};
  int32_t slot = 0;
  int32_t first_pos = 0;
  int32_t n_rows = 0;
  int32_t end = 0;              // declared end of the prompt (Step::seq_end)
  bool samples = false;         // the last row's logits are wanted: one token is sampled from them
  bool fresh = false;           // first chunk after (re)admission without a cached prefix: reset the ring slot
  std::vector<int32_t> tokens;  // of the rows that are known; the last one is missing where `pending`
  bool pending = false;         // the last row's token is what the latest step in flight samples for this sequence
  std::vector<kv::BlockId> blocks;  // the sequence's block table
};

struct StepPlan {
  int64_t step = 0;  // rising by one
  std::vector<Chunk> chunks;
  int32_t n_rows() const {
    int32_t n = 0;
    for (const Chunk& chunk : chunks) n += chunk.n_rows;
    return n;
  }
};

}  // namespace gannet::sched
