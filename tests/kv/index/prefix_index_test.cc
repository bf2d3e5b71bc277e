// The block pool and the prefix index against a naive model: random chains over a tiny vocabulary and a tiny pool,
// so that sharing, eviction and exhaustion are common.
#include "kv/index/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace gannet::kv {
namespace {

std::vector<BlockKey> chain(const BlockKey& root, const std::vector<int32_t>& tokens) {
  std::vector<BlockKey> keys;
  for (const int32_t& token : tokens) keys.push_back(next_key(keys.empty() ? root : keys.back(), {&token, 1}));
  return keys;
}

TEST(BlockKey, EveryFieldAndEveryLengthCounts) {
  const KeyDomain base{"w", "l", "k", "n", "a", "t"};
  std::set<BlockKey> keys{root_key(base)};
  for (std::string KeyDomain::*field : {&KeyDomain::weights, &KeyDomain::layout, &KeyDomain::kernels,
                                        &KeyDomain::numerics, &KeyDomain::adapter, &KeyDomain::tenant}) {
    KeyDomain other = base;
    other.*field += "x";
    EXPECT_TRUE(keys.insert(root_key(other)).second);
  }
  KeyDomain moved = base;  // the same bytes, cut elsewhere
  moved.weights = "wl";
  moved.layout = "";
  EXPECT_TRUE(keys.insert(root_key(moved)).second);
  const std::vector<int32_t> one{1}, two{1, 0}, high{256};
  for (const auto& tokens : {one, two, high}) EXPECT_TRUE(keys.insert(next_key(root_key(base), tokens)).second);
  EXPECT_TRUE(keys.insert(next_key(root_key(base), one, "pixels")).second);
}

TEST(PrefixIndex, EvictsLeavesOnlyAndOldestFirst) {
  BlockPool pool(4);
  PrefixIndex index(pool);
  const BlockKey root = root_key({});
  const auto keys = chain(root, {1, 2, 3});
  std::vector<BlockId> blocks;
  for (size_t i = 0; i < 3; ++i) {
    blocks.push_back(pool.take());
    EXPECT_EQ(index.insert(i == 0 ? root : keys[i - 1], keys[i], blocks[i]), blocks[i]);
  }
  for (const BlockId block : blocks) {
    pool.drop(block);
    index.released(block);
  }
  std::vector<PrefixIndex::Evicted> evicted;
  EXPECT_EQ(index.evict(1, &evicted), 1);
  EXPECT_EQ(evicted[0].key, keys[2]);
  EXPECT_EQ(index.match_length(keys), 2);
  const auto held = index.match({keys.data(), 1});
  EXPECT_EQ(index.evict(5, &evicted), 1) << "the held root block must stay";
  EXPECT_EQ(evicted[1].key, keys[1]);
  pool.drop(held[0]);
  index.released(held[0]);
  EXPECT_EQ(index.evict(5), 1);
  EXPECT_EQ(pool.n_free(), 4);
  index.check_invariants();
}

// What the index must know, as plain maps.
struct Naive {
  std::map<std::vector<int32_t>, BlockId> known;  // prefix -> block
  bool is_leaf(const std::vector<int32_t>& prefix) const {
    return std::none_of(known.begin(), known.end(), [&](const auto& other) {
      return other.first.size() == prefix.size() + 1 &&
             std::equal(prefix.begin(), prefix.end(), other.first.begin());
    });
  }
};

TEST(PrefixIndex, RandomOperationsAgreeWithANaiveModel) {
  std::mt19937 random(7);
  BlockPool pool(12);
  PrefixIndex index(pool);
  const BlockKey root = root_key({.weights = "w"});
  Naive naive;
  struct Request {
    std::vector<int32_t> tokens;
    std::vector<BlockId> blocks;
  };
  std::vector<Request> running;
  std::map<BlockKey, std::vector<int32_t>> prefix_of;
  for (int step = 0; step < 20000; ++step) {
    const auto action = random() % 3;
    if (action < 2 && running.size() < 4) {  // a request: match, then fill the rest with new blocks
      Request request;
      for (size_t i = 0, n = 1 + random() % 5; i < n; ++i)
        request.tokens.push_back(static_cast<int32_t>(random() % 2));
      const auto keys = chain(root, request.tokens);
      size_t expected = 0;
      while (
          expected < keys.size() &&
          naive.known.contains({request.tokens.begin(), request.tokens.begin() + static_cast<long>(expected) + 1}))
        ++expected;
      ASSERT_EQ(index.match_length(keys), static_cast<int32_t>(expected));
      request.blocks = index.match(keys);
      ASSERT_EQ(request.blocks.size(), expected);
      for (size_t i = 0; i < expected; ++i) {
        const std::vector<int32_t> prefix(request.tokens.begin(),
                                          request.tokens.begin() + static_cast<long>(i) + 1);
        ASSERT_EQ(request.blocks[i], naive.known.at(prefix));
      }
      for (size_t i = expected; i < keys.size(); ++i) {
        BlockId block = pool.take();
        if (block == kNoBlock) {
          std::vector<PrefixIndex::Evicted> evicted;
          index.evict(1, &evicted);
          for (const auto& gone : evicted) {
            const auto prefix = prefix_of.at(gone.key);
            ASSERT_TRUE(naive.is_leaf(prefix)) << "an inner node went before its children";
            naive.known.erase(prefix);
          }
          block = pool.take();
        }
        if (block == kNoBlock) break;  // everything is held: the request stays short
        const std::vector<int32_t> prefix(request.tokens.begin(),
                                          request.tokens.begin() + static_cast<long>(i) + 1);
        ASSERT_EQ(index.insert(i == 0 ? root : keys[i - 1], keys[i], block), block);
        naive.known[prefix] = block;
        prefix_of[keys[i]] = prefix;
        request.blocks.push_back(block);
      }
      running.push_back(std::move(request));
    } else if (!running.empty()) {  // a request ends, its blocks in any order
      const size_t which = random() % running.size();
      auto blocks = running[which].blocks;
      std::shuffle(blocks.begin(), blocks.end(), random);
      for (const BlockId block : blocks) {
        pool.drop(block);
        index.released(block);
      }
      running.erase(running.begin() + static_cast<long>(which));
    }
    index.check_invariants();
    ASSERT_EQ(index.size(), static_cast<int32_t>(naive.known.size()));
  }
  for (const Request& request : running)
    for (const BlockId block : request.blocks) {
      pool.drop(block);
      index.released(block);
    }
  index.evict(pool.size());
  EXPECT_EQ(pool.n_free(), pool.size()) << "a block leaked";
}

}  // namespace
}  // namespace gannet::kv
