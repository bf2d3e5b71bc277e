#include "draft/ngram.h"

#include <gtest/gtest.h>

#include <random>

namespace gannet::draft {
namespace {

using Tokens = std::vector<int32_t>;

Draft propose(Drafter& drafter, SeqId seq, int32_t max_drafts = 8) {
  const Anchor anchor{.seq = seq, .max_drafts = max_drafts};
  Draft draft;
  drafter.propose({&anchor, 1}, {&draft, 1});
  EXPECT_EQ(draft.confidence.size(), draft.tokens.size());
  EXPECT_TRUE(draft.law.empty());
  return draft;
}

void observe(Drafter& drafter, SeqId seq, const Tokens& tokens, int32_t n_drafted = 0, int32_t n_accepted = 0) {
  const Gain gain{.seq = seq, .tokens = tokens, .n_drafted = n_drafted, .n_accepted = n_accepted};
  drafter.observe({&gain, 1});
}

TEST(Ngram, DraftsWhatFollowedInThePrompt) {
  NgramDrafter drafter({.max_drafts = 4, .max_context = 100});
  drafter.begin(SeqId{1}, "", Tokens{10, 11, 12, 13, 14, 15, 16, 17, 99, 10, 11});
  EXPECT_TRUE(propose(drafter, SeqId{1}).tokens.empty());  // two tokens match, three are needed
  observe(drafter, SeqId{1}, {12});
  EXPECT_EQ(propose(drafter, SeqId{1}).tokens, (Tokens{13, 14, 15, 16}));
  EXPECT_EQ(propose(drafter, SeqId{1}, 2).tokens, (Tokens{13, 14}));
  EXPECT_TRUE(propose(drafter, SeqId{1}, 0).tokens.empty());
  observe(drafter, SeqId{1}, {13, 14, 70}, 4, 2);
  EXPECT_TRUE(propose(drafter, SeqId{1}).tokens.empty());
}

TEST(Ngram, TenantsShareOnlyWithThemselves) {
  NgramDrafter drafter({.max_drafts = 4, .max_context = 100});
  drafter.begin(SeqId{1}, "a", Tokens{1, 2, 3, 4, 5});
  drafter.begin(SeqId{2}, "a", Tokens{1, 2, 3});
  EXPECT_TRUE(propose(drafter, SeqId{2}).tokens.empty());  // the other has not ended
  drafter.forget(SeqId{1});
  EXPECT_EQ(propose(drafter, SeqId{2}).tokens, (Tokens{4, 5}));  // and not across the end of its text
  drafter.begin(SeqId{3}, "b", Tokens{1, 2, 3});
  EXPECT_TRUE(propose(drafter, SeqId{3}).tokens.empty());
  drafter.forget(SeqId{77});
}

TEST(Ngram, TheTenantUsedLongestAgoLosesItsLog) {
  NgramDrafter drafter({.max_drafts = 4, .max_context = 100, .max_tenants = 2});
  int64_t next = 0;
  const auto leave = [&](const char* tenant) {
    drafter.begin(SeqId{next}, tenant, Tokens{1, 2, 3, 4});
    drafter.forget(SeqId{next++});
  };
  const auto knows = [&](const char* tenant) {
    drafter.begin(SeqId{next}, tenant, Tokens{1, 2, 3});
    return !propose(drafter, SeqId{next++}).tokens.empty();
  };
  leave("a");
  leave("b");
  EXPECT_TRUE(knows("a"));
  leave("c");
  EXPECT_TRUE(knows("a"));
  EXPECT_FALSE(knows("b"));
  EXPECT_TRUE(knows("c"));
}

TEST(Ngram, ConfidenceIsWhatWasCounted) {
  NgramDrafter drafter({.max_drafts = 1, .max_context = 100});
  EXPECT_EQ(drafter.confidence(3, 0), 0.5f);
  EXPECT_EQ(drafter.confidence(kMaxMatch, 5), drafter.confidence(kMaxMatch, 0));
  drafter.begin(SeqId{1}, "", Tokens{1, 2, 3, 4, 1, 2, 3});
  ASSERT_EQ(propose(drafter, SeqId{1}).tokens, Tokens{4});
  for (int i = 0; i < 2000; ++i) {
    drafter.observe(std::vector<Gain>{{.seq = SeqId{1}, .tokens = {}, .n_drafted = 1, .n_accepted = i % 4 != 0}});
    ASSERT_GE(drafter.confidence(3, 0), 0);
    ASSERT_LE(drafter.confidence(3, 0), 1);
  }
  // Counts fade to a window of 200 slots beside 16 assumed at one half: (150 + 8) / 216 within the period's ripple,
  // less than 1 slot of the window.
  EXPECT_NEAR(drafter.confidence(3, 0), 158.0 / 216, 1.0 / 216);
  EXPECT_EQ(drafter.confidence(4, 0), 0.5f);
}

TEST(Ngram, SameStateSameAnswerAndNothingIsCommittedByAProposal) {
  std::mt19937 random(5);
  NgramDrafter asked({.max_drafts = 6, .max_context = 500}), silent({.max_drafts = 6, .max_context = 500});
  Tokens prompt(200);
  for (int32_t& token : prompt) token = static_cast<int32_t>(random() % 5);
  for (NgramDrafter* drafter : {&asked, &silent}) drafter->begin(SeqId{1}, "t", prompt);
  for (int step = 0; step < 200; ++step) {
    for (uint32_t n = random() % 4; n > 0; --n) (void)propose(asked, SeqId{1}, static_cast<int32_t>(random() % 7));
    const Draft a = propose(asked, SeqId{1}), b = propose(silent, SeqId{1});
    ASSERT_EQ(a.tokens, b.tokens);
    ASSERT_EQ(a.confidence, b.confidence);
    const Tokens more{static_cast<int32_t>(random() % 5)};
    observe(asked, SeqId{1}, more, static_cast<int32_t>(a.tokens.size()), 0);
    observe(silent, SeqId{1}, more, static_cast<int32_t>(a.tokens.size()), 0);
  }
}

TEST(Ngram, MemoryIsBoundedByTenantsAndLogs) {
  NgramDrafter drafter({.max_drafts = 4, .max_context = 64, .tenant_tokens = 256, .max_tenants = 3});
  int64_t most = 0;
  for (int64_t i = 0; i < 3000; ++i) {
    drafter.begin(SeqId{i}, std::to_string(i % 7), Tokens(50, static_cast<int32_t>(i % 11)));
    drafter.forget(SeqId{i});
    if (i == 300) most = drafter.memory_bytes();
  }
  EXPECT_GT(most, 0);
  EXPECT_LE(drafter.memory_bytes(), most);
}

}  // namespace
}  // namespace gannet::draft
