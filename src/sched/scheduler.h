// Continuous batching: which rows of which sequences run in the next step. Decode rows go first, then running
// prefills, then new requests, all under one row budget; when KV blocks run out the lowest-ranked sequence is put
// back and later recomputed. Knows no device, clock or thread: the time of arrival comes in as an argument.
//
// Steps may be planned ahead: plan() for step n+1 can be called before complete() of step n, and a decode row whose
// token is still being sampled is planned as `pending`. Finishing or aborting a sequence that is in flight takes
// effect when its last step retires; nothing it owns is reused before.
//
// No deadlock: a request is refused at submit unless it fits the whole pool alone, and the highest-ranked sequence
// is never put back, so it always gets the blocks it needs. Owner: the engine thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "kv/index/block_pool.h"
#include "kv/index/prefix_index.h"
#include "sched/request.h"

namespace gannet::sched {

enum class Policy : uint8_t {
  first_come,
  shortest_miss,  // fewest prompt tokens that the prefix cache does not hold
  fair,           // the tenant that was served least so far
};

struct SchedulerOptions {
  int32_t max_rows = 512;   // of one step
  int32_t max_seqs = 16;    // running at once: ring slots
  int32_t max_context = 0;  // prompt + sampled tokens
  int32_t block_tokens = 16;
  int32_t max_steps_ahead = 1;  // steps in flight when plan() is called: 0 = synchronous
  bool prefix_hits = true;      // a full block is enough to resume from (models without rings)
  Policy policy = Policy::first_come;
  int64_t ageing_us = 10'000'000;  // a waiting request gains one priority level each time this passes
};

struct SchedulerCounts {
  int32_t waiting = 0, running = 0, in_flight_steps = 0;
  int64_t preemptions = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0;  // of admitted requests
};

class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, kv::BlockPool& pool, kv::PrefixIndex& index);

  // Takes a request into the queue. Refuses (bad_request, no_capacity) what could never run, with the numbers.
  Status submit(Request request, int64_t now_us);

  // The next step; without chunks when nothing can run now.
  StepPlan plan();

  // The step retired: `sampled` holds one token for each chunk with `samples`, in order. Tokens for sequences that
  // ended meanwhile are dropped; the others are appended. Returns the ids whose token counted, in order.
  std::vector<RequestId> complete(const StepPlan& step, std::span<const int32_t> sampled);

  // Ends a request at any moment: finished by a stop condition, or aborted. Unknown and ended ids are ignored.
  void finish(RequestId id);

  // Prompt tokens that came from the cache when the request was last admitted; 0 before.
  int32_t cached_tokens(RequestId id) const;
  // All tokens so far: prompt, then sampled. Null for unknown ids.
  const std::vector<int32_t>* tokens(RequestId id) const;

  SchedulerCounts counts() const;
  bool idle() const { return sequences_.empty(); }
  void check_invariants() const;

 private:
  enum class State : uint8_t { waiting, running, ending };  // ending: waits for its steps in flight

  struct Sequence {
    Request request;
    State state = State::waiting;
    int64_t level = 0, order = 0;  // see ranks_before()
    int64_t miss = 0;
    std::vector<int32_t> tokens;        // prompt and sampled
    int32_t end = 0;                    // tokens at admission: the prompt of this run
    int32_t n_planned = 0, n_done = 0;  // rows planned, rows retired
    int32_t n_sampling = 0;             // samples planned and not retired
    int32_t n_in_flight = 0;            // steps
    int32_t n_cached = 0;
    int32_t slot = -1;
    bool fresh = true;
    bool put_back = false;  // preempted while in flight: goes to the queue when it retires
    std::vector<kv::BlockId> blocks;
    std::vector<kv::BlockKey> prompt_keys;  // of the prompt's full blocks, made when first asked for
    std::vector<kv::BlockKey> keys;         // of the blocks that were named or matched, a prefix of `blocks`
  };
  using Sequences = std::map<RequestId, Sequence>;

  bool ranks_before(const Sequence& a, const Sequence& b) const;
  std::vector<Sequence*> ranked(State state);
  bool wants_row(const Sequence& seq) const;
  bool provide_blocks(Sequence& seq, int32_t n_tokens);
  kv::BlockId take_block();
  Sequence* victim(const Sequence& wanting);
  bool admit(Sequence& seq, int32_t budget);
  void add_chunk(StepPlan& step, Sequence& seq, int32_t n_rows);
  void name_full_blocks(Sequence& seq);
  void release(Sequence& seq);
  void put_back(Sequence& seq);
  const std::vector<kv::BlockKey>& prompt_keys(Sequence& seq) const;
  int64_t miss(Sequence& seq) const;

  SchedulerOptions options_;
  kv::BlockPool& pool_;
  kv::PrefixIndex& index_;
  Sequences sequences_;
  std::vector<int32_t> free_slots_;
  std::unordered_map<std::string, int64_t> served_;  // rows run for each tenant, lifted for newcomers
  int64_t next_step_ = 0, next_order_ = 0;
  int32_t steps_in_flight_ = 0;
  SchedulerCounts counts_;
};

}  // namespace gannet::sched
