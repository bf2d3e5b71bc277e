#include "draft/suffix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gannet::draft {
namespace {

// The definition, place by place.
class NaiveIndex {
 public:
  explicit NaiveIndex(size_t capacity) : capacity_(capacity) {}

  void append(std::span<const int32_t> tokens) {
    log_.insert(log_.end(), tokens.begin(), tokens.end());
    if (log_.size() > capacity_) log_.erase(log_.begin(), log_.end() - static_cast<std::ptrdiff_t>(capacity_));
  }

  SuffixMatch find(std::span<const int32_t> context, int32_t n_following) const {
    SuffixMatch best;
    size_t from = 0;
    int n_matching = 0;
    for (size_t place = log_.size(); place-- > 0 && n_matching < kMaxChain;) {
      if (place + 1 == log_.size() || log_[place + 1] == kLogSeparator || n_following < 1) continue;
      int32_t length = 0;
      while (length < kMaxMatch && static_cast<size_t>(length) < context.size() &&
             static_cast<size_t>(length) <= place && log_[place - static_cast<size_t>(length)] != kLogSeparator &&
             log_[place - static_cast<size_t>(length)] == context[context.size() - 1 - static_cast<size_t>(length)])
        ++length;
      if (length < kMinMatch) continue;
      ++n_matching;
      if (length > best.length) best.length = length, from = place + 1;
    }
    if (best.length == 0) return best;
    for (size_t i = from; i < log_.size() && i < from + static_cast<size_t>(n_following); ++i) {
      if (log_[i] == kLogSeparator) break;
      best.following.push_back(log_[i]);
    }
    return best;
  }

 private:
  size_t capacity_;
  std::vector<int32_t> log_;
};

TEST(SuffixIndex, FindsWhatANaiveSearchFinds) {
  std::mt19937 random(1);
  int n_found = 0, n_longest = 0;
  for (int round = 0; round < 400; ++round) {
    const auto capacity = static_cast<int32_t>(1 + random() % 200);  // at most kMaxProbes: every entry is looked at
    const uint32_t alphabet = 1 + random() % 4;
    SuffixIndex index(capacity);
    NaiveIndex naive(static_cast<size_t>(capacity));
    std::vector<int32_t> text;
    for (int step = 0; step < 60; ++step) {
      std::vector<int32_t> more(1 + random() % 12);
      for (int32_t& token : more)
        token = random() % 20 == 0 ? kLogSeparator : static_cast<int32_t>(random() % alphabet);
      text.insert(text.end(), more.begin(), more.end());
      index.append(more);
      naive.append(more);
      std::vector<int32_t> context = text;
      if (random() % 3 == 0)  // not the log's own end
        for (auto i = context.size() - std::min<size_t>(context.size(), 4); i < context.size(); ++i)
          context[i] = static_cast<int32_t>(random() % alphabet);
      const auto n_following = static_cast<int32_t>(random() % 6);
      const SuffixMatch got = index.find(context, n_following), want = naive.find(context, n_following);
      ASSERT_EQ(got.length, want.length) << "round " << round << " step " << step;
      ASSERT_EQ(got.following, want.following) << "round " << round << " step " << step;
      n_found += got.length > 0;
      n_longest += got.length == kMaxMatch;
    }
    ASSERT_EQ(index.size(), std::min<int64_t>(capacity, static_cast<int64_t>(text.size())));
  }
  EXPECT_GT(n_found, 1000);
  EXPECT_GT(n_longest, 50);
}

TEST(SuffixIndex, MemoryStopsGrowingAtTheCapacity) {
  SuffixIndex index(1000);
  std::vector<int32_t> tokens(1000, 7);
  index.append(tokens);
  const int64_t full = index.memory_bytes();
  for (int i = 0; i < 50; ++i) index.append(tokens);
  EXPECT_EQ(index.memory_bytes(), full);
  EXPECT_EQ(index.size(), 1000);
}

}  // namespace
}  // namespace gannet::draft
