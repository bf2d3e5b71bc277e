#include "draft/suffix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace gannet::draft {

static_assert(kMinMatch == 3, "bucket() hashes three tokens");

SuffixIndex::SuffixIndex(int32_t capacity) : capacity_(capacity) {
  GANNET_CHECK(capacity >= 1, "a log of {} tokens", capacity);
  // One bucket for two tokens of a full log, within limits that keep a small log small.
  latest_.assign(std::bit_ceil(static_cast<size_t>(std::clamp(capacity / 2, 64, 1 << 20))), -1);
}

size_t SuffixIndex::bucket(int32_t a, int32_t b, int32_t c) const {
  uint64_t h = static_cast<uint32_t>(a);
  for (const int32_t token : {b, c}) h = (h ^ static_cast<uint32_t>(token)) * 0x9E3779B97F4A7C15u;
  return (h >> 32) & (latest_.size() - 1);
}

void SuffixIndex::append(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    const int64_t place = end_++;
    if (place < capacity_) {
      tokens_.push_back(token);
      previous_.push_back(-1);
    }
    const auto slot = static_cast<size_t>(place % capacity_);
    tokens_[slot] = token;
    previous_[slot] = -1;
    if (place - (kMinMatch - 1) < oldest()) continue;
    int64_t& head = latest_[bucket(at(place - 2), at(place - 1), token)];
    previous_[slot] = head;
    head = place;
  }
}

int32_t SuffixIndex::match_length(std::span<const int32_t> context, int64_t place) const {
  const auto n = static_cast<int64_t>(context.size());
  const int64_t most = std::min({int64_t{kMaxMatch}, n, place - oldest() + 1});
  int32_t length = 0;
  while (length < most) {
    const int32_t token = at(place - length);
    if (token == kLogSeparator || token != context[static_cast<size_t>(n - 1 - length)]) break;
    ++length;
  }
  return length;
}

SuffixMatch SuffixIndex::find(std::span<const int32_t> context, int32_t n_following) const {
  SuffixMatch match;
  const size_t n = context.size();
  if (n < kMinMatch || n_following < 1) return match;
  int64_t best = -1;
  int64_t place = latest_[bucket(context[n - 3], context[n - 2], context[n - 1])];
  int32_t tried = 0;
  for (int32_t probes = 0; place >= oldest() && tried < kMaxChain && probes < kMaxProbes; ++probes) {
    const bool followed = place + 1 < end_ && at(place + 1) != kLogSeparator;
    const int32_t length = followed ? match_length(context, place) : 0;
    if (length >= kMinMatch) ++tried;  // other runs with this hash do not count
    if (length >= kMinMatch && length > match.length) {
      match.length = length;
      best = place;
    }
    if (match.length == kMaxMatch) break;
    const int64_t before = previous_[static_cast<size_t>(place % capacity_)];
    if (before >= place) break;
    place = before;
  }
  if (best < 0) return match;
  for (int64_t i = best + 1; i < end_ && i <= best + n_following && at(i) != kLogSeparator; ++i)
    match.following.push_back(at(i));
  return match;
}

int64_t SuffixIndex::memory_bytes() const {
  return static_cast<int64_t>(tokens_.capacity() * sizeof(int32_t) + previous_.capacity() * sizeof(int64_t) +
                              latest_.capacity() * sizeof(int64_t));
}

}  // namespace gannet::draft
