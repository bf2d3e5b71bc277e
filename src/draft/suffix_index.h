// Finds where the end of a text stood before: the longest match of a context's last tokens in a log of tokens.
//
// The log is a ring of bounded capacity with hash chains over runs of kMinMatch tokens, as in LZ77 (Ziv and Lempel
// 1977; the chains are those of DEFLATE, RFC 1951 section 4): adding a token and looking at one candidate take
// constant time. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gannet::draft {

constexpr int32_t kMinMatch = 3;       // tokens that must match before anything is proposed
constexpr int32_t kMaxMatch = 32;      // longer matches count as this long
constexpr int32_t kMaxChain = 32;      // places that match looked at, the most recent ones
constexpr int32_t kMaxProbes = 256;    // entries of a chain read at most, other runs of the same hash included
constexpr int32_t kLogSeparator = -1;  // between documents; matches nothing, and no continuation crosses it

struct SuffixMatch {
  int32_t length = 0;              // tokens that match, kMinMatch..kMaxMatch; 0: none
  std::vector<int32_t> following;  // what stood behind the match
};

class SuffixIndex {
 public:
  // Keeps the last `capacity` tokens, at least 1.
  explicit SuffixIndex(int32_t capacity);

  // Ids are >= 0, or kLogSeparator.
  void append(std::span<const int32_t> tokens);

  // The longest match of the end of `context` among the kMaxChain latest places where its last kMinMatch tokens
  // stand, ties to the most recent, with at most n_following tokens, at least one, behind it. Places behind
  // kMaxProbes entries of the hash chain are not seen, so a text made of colliding runs costs constant time too.
  // `context` may be the log's own end: that place has nothing behind it and is no match.
  SuffixMatch find(std::span<const int32_t> context, int32_t n_following) const;

  int64_t size() const { return end_ < capacity_ ? end_ : capacity_; }
  int64_t memory_bytes() const;

 private:
  int32_t at(int64_t place) const { return tokens_[static_cast<size_t>(place % capacity_)]; }
  int64_t oldest() const { return end_ - size(); }
  size_t bucket(int32_t a, int32_t b, int32_t c) const;
  int32_t match_length(std::span<const int32_t> context, int64_t place) const;

  int64_t capacity_;
  int64_t end_ = 0;                // tokens ever appended; places count from 0
  std::vector<int32_t> tokens_;    // [min(end, capacity)], place % capacity
  std::vector<int64_t> previous_;  // same: the place before it whose run has the same hash, -1 for none
  std::vector<int64_t> latest_;    // [buckets]
};

}  // namespace gannet::draft
