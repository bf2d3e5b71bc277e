#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>

#include "text/byte_alphabet.h"
#include "text/unicode.h"

namespace gannet {
namespace {

constexpr int kMaxProbes = 1024;
constexpr size_t kShort = 48;  // symbols up to which scanning for the lowest rank beats a heap (measured)
constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();

size_t pair_hash(int32_t left, int32_t right) {
  const uint64_t key = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  const uint64_t h = (key ^ key >> 29) * 0x9E3779B97F4A7C15ull;
  return static_cast<size_t>(h ^ h >> 32);
}

}  // namespace

RankedBpe::RankedBpe(const Vocabulary* vocabulary, BpeOptions options)
    : vocabulary_(vocabulary),
      options_(options),
      whole_(std::make_unique<std::atomic<uint8_t>[]>(static_cast<size_t>(vocabulary->size()))) {
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    byte_symbol_[b] = vocabulary->byte_level() ? vocabulary->find_model({&byte, 1})
                                               : vocabulary->find_model(fmt::format("<0x{:02X}>", b));
  }
}

void RankedBpe::reserve(size_t n_merges) {
  std::vector<Merge> old(std::bit_ceil(std::max<size_t>(16, n_merges * 2)));
  old.swap(merges_);
  for (const Merge& merge : old)
    if (merge.left >= 0) insert(merge);
}

// The model's own form of two spellings, one behind the other: bytes for a byte-level vocabulary. Returns where the
// second begins; nothing when a character is outside the alphabet, so that no text holds the token.
std::optional<size_t> RankedBpe::join(std::string_view left, std::string_view right) {
  joined_.resize(left.size() + right.size());
  if (!vocabulary_->byte_level()) {
    std::copy(left.begin(), left.end(), joined_.begin());
    std::copy(right.begin(), right.end(), joined_.begin() + std::ssize(left));
    return left.size();
  }
  const int64_t n = bytes_from_alphabet(left, joined_.data());
  const int64_t m = n < 0 ? n : bytes_from_alphabet(right, joined_.data() + n);
  if (m < 0) return std::nullopt;
  joined_.resize(static_cast<size_t>(n + m));
  return static_cast<size_t>(n);
}

Status RankedBpe::add_merge(std::string_view left, std::string_view right) {
  if ((n_merges_ + 1) * 2 > merges_.size()) reserve(n_merges_ + 1);
  const int32_t rank = next_rank_++;
  const auto middle = join(left, right);
  if (!middle) return ok();
  const std::string_view joined = joined_;
  const Merge merge{vocabulary_->find_model(joined.substr(0, *middle)),
                    vocabulary_->find_model(joined.substr(*middle)), rank, vocabulary_->find_model(joined)};
  if (merge.left < 0 || merge.right < 0 || merge.result < 0)
    return Error{Errc::bad_file,
                 fmt::format("tokenizer: merge {} of '{}' and '{}' needs a token that the vocabulary lacks", rank,
                             left, right)};
  if (vocabulary_->at(merge.result).has(Token::kControl)) return ok();
  if (!insert(merge))
    return Error{Errc::bad_file, fmt::format("tokenizer: over {} merges share a hash, last {}", kMaxProbes, rank)};
  return ok();
}

bool RankedBpe::insert(const Merge& merge) {
  const size_t mask = merges_.size() - 1;
  size_t i = pair_hash(merge.left, merge.right) & mask;
  for (int probes = 0; merges_[i].left >= 0; i = (i + 1) & mask) {
    if (merges_[i].left == merge.left && merges_[i].right == merge.right) {
      merges_[i] = merge;  // a pair listed twice has its last rank
      return true;
    }
    if (++probes == kMaxProbes) return false;
  }
  merges_[i] = merge;
  ++n_merges_;
  return true;
}

const RankedBpe::Merge* RankedBpe::find(int32_t left, int32_t right) const {
  if (merges_.empty()) return nullptr;
  const size_t mask = merges_.size() - 1;
  for (size_t i = pair_hash(left, right) & mask;; i = (i + 1) & mask) {
    const Merge& merge = merges_[i];
    if (merge.left < 0) return nullptr;
    if (merge.left == left && merge.right == right) return &merge;
  }
}

// An unknown character. `pending_unk` counts the unknown characters that wait to be written (0 or 1 token): the
// next known character writes them, which byte tokens in between do not; so the reference does it.
void RankedBpe::fallback(std::string_view character, std::vector<int32_t>& out, int& pending_unk) const {
  if (options_.byte_fallback) {
    bool all = true;
    for (const char b : character) all = all && byte_symbol_[static_cast<unsigned char>(b)] >= 0;
    if (all) {
      for (const char b : character) out.push_back(byte_symbol_[static_cast<unsigned char>(b)]);
      return;
    }
  }
  if (options_.unk_id < 0) return;
  if (pending_unk > 0 && !options_.fuse_unk) out.push_back(options_.unk_id);
  pending_unk = 1;
}

void RankedBpe::symbols(std::string_view piece, std::vector<int32_t>& out) const {
  int pending_unk = 0;
  const auto push = [&](std::string_view character, int32_t id) {
    if (id < 0) return fallback(character, out, pending_unk);
    if (std::exchange(pending_unk, 0) > 0) out.push_back(options_.unk_id);
    out.push_back(id);
  };
  const char* end = piece.data() + piece.size();
  if (vocabulary_->byte_level()) {
    for (const char* p = piece.data(); p < end; ++p) push({p, 1}, byte_symbol_[static_cast<unsigned char>(*p)]);
  } else {
    for (const char* p = piece.data(); p < end;) {
      const std::string_view character(p, char_at(p, end).size);
      push(character, vocabulary_->find_model(character));
      p += character.size();
    }
  }
  if (pending_unk > 0) out.push_back(options_.unk_id);
}

// Merges ids[first..] in place, looking through all neighbours for the lowest rank each time.
void RankedBpe::merge_short(std::vector<int32_t>& ids, size_t first) const {
  int32_t* id = ids.data() + first;
  size_t n = ids.size() - first;
  int32_t rank[kShort], result[kShort];  // of id[i] with id[i + 1]
  const auto look = [&](size_t i) {
    const Merge* merge = find(id[i], id[i + 1]);
    rank[i] = merge == nullptr ? kNoRank : merge->rank;
    result[i] = merge == nullptr ? 0 : merge->result;
  };
  for (size_t i = 0; i + 1 < n; ++i) look(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (rank[i] < rank[best]) best = i;
    if (rank[best] == kNoRank) break;
    id[best] = result[best];
    for (size_t i = best + 1; i + 1 < n; ++i) id[i] = id[i + 1];
    for (size_t i = best + 1; i + 2 < n; ++i) rank[i] = rank[i + 1], result[i] = result[i + 1];
    --n;
    if (best > 0) look(best - 1);
    if (best + 1 < n) look(best);
  }
  ids.resize(first + n);
}

// The same with a heap over a linked list.
void RankedBpe::merge_long(std::vector<int32_t>& ids, size_t first) const {
  struct Link {
    int32_t previous, next;
  };
  struct Candidate {
    int32_t rank, at, left, right;
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  int32_t* id = ids.data() + first;
  const auto n = static_cast<int32_t>(ids.size() - first);
  std::vector<Link> links(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) links[static_cast<size_t>(i)] = {i - 1, i + 1 < n ? i + 1 : -1};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](int32_t at) {
    if (at < 0) return;
    const int32_t next = links[static_cast<size_t>(at)].next;
    if (next < 0) return;
    if (const Merge* merge = find(id[at], id[next])) queue.push({merge->rank, at, id[at], id[next]});
  };
  for (int32_t i = 0; i + 1 < n; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Link& link = links[static_cast<size_t>(top.at)];
    // A candidate is stale when either side has been merged since it was offered.
    if (id[top.at] != top.left || link.next < 0 || id[link.next] != top.right) continue;
    const Link gone = links[static_cast<size_t>(link.next)];
    id[top.at] = find(top.left, top.right)->result;
    id[link.next] = -1;
    link.next = gone.next;
    if (gone.next >= 0) links[static_cast<size_t>(gone.next)].previous = top.at;
    offer(link.previous);
    offer(top.at);
  }
  size_t kept = first;
  for (int32_t i = 0; i >= 0 && i < n; i = links[static_cast<size_t>(i)].next) ids[kept++] = id[i];
  ids.resize(kept);
}

void RankedBpe::encode_by_merges(std::string_view piece, std::vector<int32_t>& out) const {
  const size_t first = out.size();
  symbols(piece, out);
  if (out.size() - first <= kShort) {
    merge_short(out, first);
  } else {
    merge_long(out, first);
  }
}

void RankedBpe::encode(std::string_view piece, std::vector<int32_t>& out) const {
  if (piece.empty()) return;
  const int32_t id = vocabulary_->find_model(piece);
  if (id < 0 || vocabulary_->at(id).has(Token::kControl)) return encode_by_merges(piece, out);
  if (options_.ignore_merges) return out.push_back(id);
  // Most pieces of real text are a token, and most tokens are what their text encodes to.
  std::atomic<uint8_t>& state = whole_[static_cast<size_t>(id)];
  switch (state.load(std::memory_order_relaxed)) {
    case kWhole:
      return out.push_back(id);
    case kSplits:
      return encode_by_merges(piece, out);
    default:
      break;
  }
  const size_t first = out.size();
  encode_by_merges(piece, out);
  const bool whole = out.size() == first + 1 && out[first] == id;
  state.store(whole ? kWhole : kSplits, std::memory_order_relaxed);
}

}  // namespace gannet
