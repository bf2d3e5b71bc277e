#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"

namespace gannet::sched {
namespace {

int32_t blocks_for(int32_t n_tokens, int32_t block_tokens) { return (n_tokens + block_tokens - 1) / block_tokens; }

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, kv::BlockPool& pool, kv::PrefixIndex& index)
    : options_(options), pool_(pool), index_(index) {
  for (int32_t slot = options_.max_seqs - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

Status Scheduler::submit(Request request, int64_t now_us) {
  const auto n_prompt = static_cast<int64_t>(request.prompt.size());
  if (n_prompt == 0) return Error{Errc::bad_request, "the prompt has no tokens"};
  if (request.max_tokens < 1)
    return Error{Errc::bad_request, fmt::format("max_tokens is {}, it must be at least 1", request.max_tokens)};
  if (n_prompt >= options_.max_context)
    return Error{Errc::no_capacity,
                 fmt::format("the prompt has {} tokens, the context holds {} and the answer needs at "
                             "least one",
                             n_prompt, options_.max_context)};
  // The last sampled token never becomes a row, so it needs no cache.
  const int64_t most = std::min<int64_t>(n_prompt + request.max_tokens - 1, options_.max_context - 1);
  if (blocks_for(static_cast<int32_t>(most), options_.block_tokens) > pool_.size())
    return Error{Errc::no_capacity,
                 fmt::format("{} tokens need {} KV blocks, the cache has {}", most,
                             blocks_for(static_cast<int32_t>(most), options_.block_tokens), pool_.size())};
  if (sequences_.contains(request.id))
    return Error{Errc::bad_request, fmt::format("request {} is running already", static_cast<int64_t>(request.id))};
  Sequence seq;
  seq.request = std::move(request);
  seq.request.max_tokens =
      static_cast<int32_t>(std::min<int64_t>(seq.request.max_tokens, options_.max_context - n_prompt));
  seq.tokens = seq.request.prompt;
  seq.level = seq.request.priority - (options_.ageing_us > 0 ? now_us / options_.ageing_us : 0);
  seq.order = next_order_++;
  // A tenant that comes back starts level with the least served one that is active: idling saves up nothing.
  int64_t least = INT64_MAX;
  for (const auto& [id, other] : sequences_) least = std::min(least, served_[other.request.tenant]);
  auto& served = served_[seq.request.tenant];
  if (least != INT64_MAX) served = std::max(served, least);
  sequences_.emplace(seq.request.id, std::move(seq));
  return ok();
}

// Whether `a` goes before `b`: by level, then the policy (waiting ones only, so that no running one is put back
// merely because another's prompt is shorter), then arrival. A level is a priority, lowered by one for each ageing
// period that the clock had run at arrival: so older requests overtake, and the order of two requests never changes
// with time.
bool Scheduler::ranks_before(const Sequence& a, const Sequence& b) const {
  if (a.level != b.level) return a.level > b.level;
  if (a.state == State::waiting && b.state == State::waiting) {
    const bool restarted_a = a.tokens.size() > a.request.prompt.size(),
               restarted_b = b.tokens.size() > b.request.prompt.size();
    if (restarted_a != restarted_b) return restarted_a;  // somebody is reading its answer already
    if (options_.policy == Policy::shortest_miss && a.miss != b.miss) return a.miss < b.miss;
    if (options_.policy == Policy::fair && a.request.tenant != b.request.tenant) {
      const int64_t served_a = served_.at(a.request.tenant), served_b = served_.at(b.request.tenant);
      if (served_a != served_b) return served_a < served_b;
    }
  }
  return a.order < b.order;
}

std::vector<Scheduler::Sequence*> Scheduler::ranked(State state) {
  std::vector<Sequence*> list;
  for (auto& [id, seq] : sequences_) {
    if (seq.state != state) continue;
    if (state == State::waiting && options_.policy == Policy::shortest_miss) seq.miss = miss(seq);
    list.push_back(&seq);
  }
  std::sort(list.begin(), list.end(), [&](const Sequence* a, const Sequence* b) { return ranks_before(*a, *b); });
  return list;
}

int64_t Scheduler::miss(Sequence& seq) const {
  const auto n = static_cast<int64_t>(seq.tokens.size());
  return options_.prefix_hits ? n - int64_t{index_.match_length(prompt_keys(seq))} * options_.block_tokens : n;
}

// Keys of the blocks that a hit may cover; made once for each stay in the queue.
const std::vector<kv::BlockKey>& Scheduler::prompt_keys(Sequence& seq) const {
  // The last token always runs, for its logits: a block that ends with it is no use.
  const auto bt = static_cast<size_t>(options_.block_tokens);
  const auto n_blocks = (seq.tokens.size() - 1) / bt;
  while (seq.prompt_keys.size() < n_blocks) {
    const size_t i = seq.prompt_keys.size();
    seq.prompt_keys.push_back(
        kv::next_key(i == 0 ? seq.request.root : seq.prompt_keys.back(), {seq.tokens.data() + i * bt, bt}));
  }
  return seq.prompt_keys;
}

// A running sequence has a next row once its previous one was planned, until every token it may sample is planned.
bool Scheduler::wants_row(const Sequence& seq) const {
  if (seq.state != State::running || seq.put_back) return false;
  const auto sampled = static_cast<int32_t>(seq.tokens.size() - seq.request.prompt.size());
  return seq.n_planned < seq.end || sampled + seq.n_sampling < seq.request.max_tokens;
}

kv::BlockId Scheduler::take_block() {
  kv::BlockId block = pool_.take();
  if (block == kv::kNoBlock && index_.evict(1) == 1) block = pool_.take();
  return block;
}

// The lowest-ranked running sequence that ranks after `wanting`.
Scheduler::Sequence* Scheduler::victim(const Sequence& wanting) {
  Sequence* lowest = nullptr;
  for (auto& [id, seq] : sequences_) {
    if (seq.state != State::running || seq.put_back || &seq == &wanting || seq.blocks.empty()) continue;
    if (!ranks_before(wanting, seq)) continue;
    if (lowest == nullptr || ranks_before(*lowest, seq)) lowest = &seq;
  }
  return lowest;
}

// Blocks for the first `n_tokens` positions; false when it must wait for a step in flight, or for higher-ranked
// ones.
bool Scheduler::provide_blocks(Sequence& seq, int32_t n_tokens) {
  while (static_cast<int32_t>(seq.blocks.size()) < blocks_for(n_tokens, options_.block_tokens)) {
    const kv::BlockId block = take_block();
    if (block != kv::kNoBlock) {
      seq.blocks.push_back(block);
      continue;
    }
    Sequence* lower = victim(seq);
    if (lower == nullptr) return false;
    put_back(*lower);
  }
  return true;
}

void Scheduler::put_back(Sequence& seq) {
  ++counts_.preemptions;
  if (seq.n_in_flight > 0) {
    seq.put_back = true;  // its blocks are being read and written; they come free when the step retires
    return;
  }
  release(seq);
  seq.state = State::waiting;
}

void Scheduler::release(Sequence& seq) {
  for (const kv::BlockId block : seq.blocks) {
    pool_.drop(block);
    index_.released(block);
  }
  seq.blocks.clear();
  seq.keys.clear();
  if (seq.slot >= 0) free_slots_.push_back(seq.slot);
  seq.slot = -1;
  seq.n_planned = seq.n_done = seq.n_sampling = seq.n_cached = 0;
  seq.put_back = false;
}

bool Scheduler::admit(Sequence& seq, int32_t budget) {
  if (free_slots_.empty() || budget <= 0) return false;
  seq.end = static_cast<int32_t>(seq.tokens.size());
  std::vector<kv::BlockId> matched;
  if (options_.prefix_hits) matched = index_.match(prompt_keys(seq));
  const auto n_matched = static_cast<int32_t>(matched.size());
  // Room for the whole prompt and one block more for each running sequence, so that admission does not force the
  // next decode step to put somebody back. An empty machine takes anything that fits.
  const int32_t running = options_.max_seqs - static_cast<int32_t>(free_slots_.size());
  const int32_t needed = blocks_for(seq.end, options_.block_tokens) - n_matched + running;
  seq.blocks = std::move(matched);
  if (running > 0 && needed > pool_.n_free() + pool_.n_kept()) {
    release(seq);
    return false;
  }
  seq.keys.assign(seq.prompt_keys.begin(), seq.prompt_keys.begin() + n_matched);
  seq.n_planned = seq.n_done = seq.n_cached = n_matched * options_.block_tokens;
  seq.slot = free_slots_.back();
  free_slots_.pop_back();
  seq.state = State::running;
  seq.fresh = true;
  counts_.prompt_tokens += seq.end;
  counts_.cached_tokens += seq.n_cached;
  return true;
}

void Scheduler::add_chunk(StepPlan& step, Sequence& seq, int32_t n_rows) {
  Chunk chunk;
  chunk.request = seq.request.id;
  chunk.slot = seq.slot;
  chunk.first_pos = seq.n_planned;
  chunk.n_rows = n_rows;
  chunk.end = seq.end;
  chunk.fresh = seq.fresh;
  const auto n_tokens = static_cast<int32_t>(seq.tokens.size());  // may lag behind n_planned by the steps in flight
  const int32_t known = std::min(n_tokens, seq.n_planned + n_rows);
  chunk.tokens.assign(seq.tokens.begin() + std::min(n_tokens, seq.n_planned), seq.tokens.begin() + known);
  chunk.pending = known < seq.n_planned + n_rows;
  chunk.blocks = seq.blocks;
  seq.fresh = false;
  seq.n_planned += n_rows;
  chunk.samples = seq.n_planned >= seq.end;
  seq.n_sampling += chunk.samples;
  ++seq.n_in_flight;
  served_[seq.request.tenant] += n_rows;
  step.chunks.push_back(std::move(chunk));
}

StepPlan Scheduler::plan() {
  StepPlan step;
  step.step = next_step_;
  if (steps_in_flight_ > options_.max_steps_ahead) return step;
  int32_t budget = options_.max_rows;
  // Decode rows first, then prefills under way: a list taken before anybody is put back, so look at the state
  // again.
  for (const bool decoding : {true, false}) {
    for (Sequence* seq : ranked(State::running)) {
      if (seq->state != State::running || !wants_row(*seq) || (seq->n_planned >= seq->end) != decoding ||
          budget == 0)
        continue;
      const int32_t n = decoding ? 1 : std::min(budget, seq->end - seq->n_planned);
      if (!provide_blocks(*seq, seq->n_planned + n)) continue;
      budget -= n;
      add_chunk(step, *seq, n);
    }
  }
  for (Sequence* seq : ranked(State::waiting)) {
    if (seq->n_in_flight > 0) continue;
    if (!admit(*seq, budget)) break;  // nobody overtakes: else a long prompt could wait forever
    const int32_t n = std::min(budget, seq->end - seq->n_planned);
    if (!provide_blocks(*seq, seq->n_planned + n)) {
      release(*seq);
      seq->state = State::waiting;
      break;
    }
    budget -= n;
    add_chunk(step, *seq, n);
  }
  if (!step.chunks.empty()) {
    ++next_step_;
    ++steps_in_flight_;
  }
  return step;
}

// Blocks whose rows all retired get their content address. Where another sequence has the same content already, its
// block replaces ours; ours comes free, which steps in flight allow: they only read it, and steps run in order.
void Scheduler::name_full_blocks(Sequence& seq) {
  if (!options_.prefix_hits) return;
  const auto bt = static_cast<size_t>(options_.block_tokens);
  while ((seq.keys.size() + 1) * bt <= static_cast<size_t>(seq.n_done)) {
    const size_t i = seq.keys.size();
    const kv::BlockKey parent = i == 0 ? seq.request.root : seq.keys.back();
    const kv::BlockKey key = kv::next_key(parent, {seq.tokens.data() + i * bt, bt});
    seq.blocks[i] = index_.insert(parent, key, seq.blocks[i]);
    seq.keys.push_back(key);
  }
}

std::vector<RequestId> Scheduler::complete(const StepPlan& step, std::span<const int32_t> sampled) {
  GANNET_CHECK(steps_in_flight_ > 0, "no step is in flight");
  --steps_in_flight_;
  std::vector<RequestId> counted;
  size_t next = 0;
  for (const Chunk& chunk : step.chunks) {
    Sequence& seq = sequences_.at(chunk.request);
    --seq.n_in_flight;
    const int32_t token = chunk.samples ? sampled[next++] : 0;
    if (seq.state == State::ending) {
      if (seq.n_in_flight > 0) continue;
      release(seq);
      sequences_.erase(chunk.request);
      continue;
    }
    seq.n_done = chunk.first_pos + chunk.n_rows;
    if (chunk.samples) {
      --seq.n_sampling;
      seq.tokens.push_back(token);
      counted.push_back(chunk.request);
    }
    name_full_blocks(seq);
    if (seq.put_back && seq.n_in_flight == 0) {
      release(seq);
      seq.state = State::waiting;
    }
  }
  GANNET_CHECK(next == sampled.size(), "{} tokens for {} samples", static_cast<long long>(sampled.size()),
               static_cast<long long>(next));
  return counted;
}

void Scheduler::finish(RequestId id) {
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return;
  if (it->second.n_in_flight > 0) {
    it->second.state = State::ending;
    return;
  }
  release(it->second);
  sequences_.erase(it);
}

int32_t Scheduler::cached_tokens(RequestId id) const {
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? 0 : it->second.n_cached;
}

const std::vector<int32_t>* Scheduler::tokens(RequestId id) const {
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? nullptr : &it->second.tokens;
}

SchedulerCounts Scheduler::counts() const {
  SchedulerCounts counts = counts_;
  counts.in_flight_steps = steps_in_flight_;
  for (const auto& [id, seq] : sequences_) {
    counts.waiting += seq.state == State::waiting;
    counts.running += seq.state != State::waiting;
  }
  return counts;
}

void Scheduler::check_invariants() const {
  index_.check_invariants();
  std::vector<int32_t> references(static_cast<size_t>(pool_.size()));
  std::set<int32_t> slots(free_slots_.begin(), free_slots_.end());
  GANNET_CHECK(slots.size() == free_slots_.size(), "a slot is free twice");
  for (const auto& [id, seq] : sequences_) {
    for (const kv::BlockId block : seq.blocks) ++references[static_cast<size_t>(kv::index_of(block))];
    if (seq.state == State::waiting)
      GANNET_CHECK(seq.blocks.empty() && seq.slot < 0 && seq.n_in_flight == 0, "a waiting sequence owns {} blocks",
                   static_cast<long long>(seq.blocks.size()));
    if (seq.state == State::running) {
      GANNET_CHECK(slots.insert(seq.slot).second, "slot {} has two owners", seq.slot);
      GANNET_CHECK(
          seq.n_done <= seq.n_planned && seq.n_planned <= static_cast<int32_t>(seq.tokens.size()) + seq.n_sampling,
          "{} done, {} planned", seq.n_done, seq.n_planned);
      GANNET_CHECK(static_cast<int64_t>(seq.blocks.size()) * options_.block_tokens >= seq.n_planned,
                   "{} rows in {} blocks", seq.n_planned, static_cast<long long>(seq.blocks.size()));
    } else if (seq.slot >= 0) {
      GANNET_CHECK(slots.insert(seq.slot).second, "slot {} has two owners", seq.slot);
    }
  }
  GANNET_CHECK(static_cast<int32_t>(slots.size()) == options_.max_seqs, "{} slots of {} are accounted for",
               static_cast<long long>(slots.size()), options_.max_seqs);
  for (int32_t i = 0; i < pool_.size(); ++i)
    GANNET_CHECK(pool_.references(kv::BlockId{i}) == references[static_cast<size_t>(i)],
                 "block {}: {} references, {} owners", i, pool_.references(kv::BlockId{i}),
                 references[static_cast<size_t>(i)]);
}

}  // namespace gannet::sched
