#include "draft/ngram.h"

#include <algorithm>

#include "base/check.h"

namespace gannet::draft {
namespace {

constexpr double kPriorSlots = 16, kPriorRate = 0.5;
constexpr double kFade = 0.995;  // a slot counts half after 138 more of its length

// Later slots stand behind a match that has grown by the slots accepted before them.
int32_t effective(int32_t length, int32_t slot) { return std::min(length + slot, kMaxMatch); }

}  // namespace

NgramDrafter::NgramDrafter(const NgramOptions& options) : options_(options) {
  GANNET_CHECK(options.max_drafts >= 1 && options.max_context >= 1, "{} drafts, context of {}", options.max_drafts,
               options.max_context);
}

void NgramDrafter::begin(SeqId seq, std::string_view tenant, std::span<const int32_t> prompt) {
  const auto [it, fresh] = sequences_.emplace(
      seq, Sequence{std::string(tenant), {prompt.begin(), prompt.end()}, SuffixIndex(options_.max_context)});
  GANNET_CHECK(fresh, "sequence {} began twice", static_cast<int64_t>(seq));
  it->second.own.append(prompt);
}

SuffixIndex* NgramDrafter::log_of(const std::string& tenant) {
  const auto it = tenants_.find(tenant);
  if (it == tenants_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, it->second.used);
  return &it->second.log;
}

// The sequence's own text wins ties: it is the likelier to go on the same way.
SuffixMatch NgramDrafter::best_match(Sequence& sequence, int32_t n_following) {
  SuffixMatch match = sequence.own.find(sequence.tokens, n_following);
  if (match.length == kMaxMatch) return match;
  if (const SuffixIndex* log = log_of(sequence.tenant)) {
    SuffixMatch shared = log->find(sequence.tokens, n_following);
    if (shared.length > match.length) return shared;
  }
  return match;
}

float NgramDrafter::confidence(int32_t length, int32_t slot) const {
  const Rate& rate = rates_[static_cast<size_t>(effective(length, slot))];
  return static_cast<float>((rate.accepted + kPriorSlots * kPriorRate) / (rate.reached + kPriorSlots));
}

void NgramDrafter::propose(std::span<const Anchor> anchors, std::span<Draft> drafts) {
  GANNET_CHECK(anchors.size() == drafts.size(), "{} anchors, {} drafts", anchors.size(), drafts.size());
  for (size_t i = 0; i < anchors.size(); ++i) {
    const auto it = sequences_.find(anchors[i].seq);
    GANNET_CHECK(it != sequences_.end(), "sequence {} never began", static_cast<int64_t>(anchors[i].seq));
    Sequence& sequence = it->second;
    SuffixMatch match = best_match(sequence, std::min(anchors[i].max_drafts, options_.max_drafts));
    sequence.match = match.length;
    Draft& draft = drafts[i];
    draft.law.clear();
    draft.confidence.clear();
    for (size_t k = 0; k < match.following.size(); ++k)
      draft.confidence.push_back(confidence(match.length, static_cast<int32_t>(k)));
    draft.tokens = std::move(match.following);
  }
}

void NgramDrafter::observe(std::span<const Gain> gains) {
  for (const Gain& gain : gains) {
    const auto it = sequences_.find(gain.seq);
    GANNET_CHECK(it != sequences_.end(), "sequence {} never began", static_cast<int64_t>(gain.seq));
    GANNET_CHECK(gain.n_accepted >= 0 && gain.n_accepted <= gain.n_drafted, "{} of {} drafts accepted",
                 gain.n_accepted, gain.n_drafted);
    Sequence& sequence = it->second;
    for (int32_t slot = 0; slot < std::min(gain.n_accepted + 1, gain.n_drafted); ++slot) {
      Rate& rate = rates_[static_cast<size_t>(effective(sequence.match, slot))];
      rate.reached = rate.reached * kFade + 1;
      rate.accepted = rate.accepted * kFade + (slot < gain.n_accepted ? 1 : 0);
    }
    sequence.tokens.insert(sequence.tokens.end(), gain.tokens.begin(), gain.tokens.end());
    sequence.own.append(gain.tokens);
  }
}

void NgramDrafter::forget(SeqId seq) {
  const auto it = sequences_.find(seq);
  if (it == sequences_.end()) return;
  if (options_.tenant_tokens > 0 && options_.max_tenants > 0) {
    const std::string& tenant = it->second.tenant;
    SuffixIndex* log = log_of(tenant);
    if (log == nullptr) {
      if (tenants_.size() >= static_cast<size_t>(options_.max_tenants)) {
        tenants_.erase(by_use_.back());
        by_use_.pop_back();
      }
      by_use_.push_front(tenant);
      log =
          &tenants_.emplace(tenant, Tenant{SuffixIndex(options_.tenant_tokens), by_use_.begin()}).first->second.log;
    }
    log->append(it->second.tokens);
    const int32_t separator = kLogSeparator;
    log->append({&separator, 1});
  }
  sequences_.erase(it);
}

int64_t NgramDrafter::memory_bytes() const {
  int64_t bytes = 0;
  for (const auto& [id, sequence] : sequences_)
    bytes += sequence.own.memory_bytes() + static_cast<int64_t>(sequence.tokens.capacity() * sizeof(int32_t));
  for (const auto& [name, tenant] : tenants_) bytes += tenant.log.memory_bytes();
  return bytes;
}

}  // namespace gannet::draft
