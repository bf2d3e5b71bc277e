// Drafts without a model: what followed when the last tokens stood there before, in the sequence itself or in what
// its tenant's ended sequences left. For text that repeats its prompt: edits, quotes, tool results.
//
// Confidence is counted, not assumed: by the length of the match, how often a slot was accepted so far (all
// sequences together, old counts fading). A text that does not repeat soon drafts nothing that pays.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "draft/drafter.h"
#include "draft/suffix_index.h"

namespace gannet::draft {

struct NgramOptions {
  int32_t max_drafts = 8;
  int32_t max_context = 0;          // of one sequence: bounds its own log
  int32_t tenant_tokens = 1 << 18;  // kept of each tenant's ended sequences; 0: nothing is shared
  int32_t max_tenants = 64;         // with a log; the one used longest ago loses its log
};

class NgramDrafter final : public Drafter {
 public:
  explicit NgramDrafter(const NgramOptions& options);

  int32_t max_drafts() const override { return options_.max_drafts; }
  void begin(SeqId seq, std::string_view tenant, std::span<const int32_t> prompt) override;
  void propose(std::span<const Anchor> anchors, std::span<Draft> drafts) override;
  void observe(std::span<const Gain> gains) override;
  void forget(SeqId seq) override;
  int64_t memory_bytes() const override;

  // The estimate for the slot `slot` (from 0) behind a match of `length` tokens.
  float confidence(int32_t length, int32_t slot) const;

 private:
  struct Sequence {
    std::string tenant;
    std::vector<int32_t> tokens;
    SuffixIndex own;
    int32_t match = 0;  // length of the match that the last proposal came from
  };
  struct Tenant {
    SuffixIndex log;
    std::list<std::string>::iterator used;
  };
  // Slots reached and accepted, fading; begins as if kPriorSlots had been accepted at kPriorRate.
  struct Rate {
    double reached = 0, accepted = 0;
  };

  SuffixIndex* log_of(const std::string& tenant);
  SuffixMatch best_match(Sequence& sequence, int32_t n_following);

  NgramOptions options_;
  std::map<SeqId, Sequence> sequences_;
  std::unordered_map<std::string, Tenant> tenants_;
  std::list<std::string> by_use_;  // most recent first
  std::array<Rate, kMaxMatch + 1> rates_{};
};

}  // namespace gannet::draft
