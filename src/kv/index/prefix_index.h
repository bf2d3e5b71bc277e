// Full blocks by content: a tree of block keys. A node names one block of the pool; a prefix that is known is a
// path from the root. Nodes without children and without references are evicted, least recently used first, so a
// chain is never cut in its middle. Host only. Owner: the engine thread.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/index/block_key.h"
#include "kv/index/block_pool.h"

namespace gannet::kv {

class PrefixIndex {
 public:
  explicit PrefixIndex(BlockPool& pool) : pool_(pool) {}

  // Blocks of the longest known chain along `keys`, each held once more for the caller (who drops them). Marks them
  // used.
  std::vector<BlockId> match(std::span<const BlockKey> keys);
  // Length of that chain, changing nothing.
  int32_t match_length(std::span<const BlockKey> keys) const;

  // Names `block` as the content of `key` after `parent`, a root key or one whose block the caller holds. The
  // caller's reference to `block` becomes a reference to the block returned: `block` itself, or, when the key is
  // known already, the block that holds the same content; then `block` is dropped.
  BlockId insert(const BlockKey& parent, const BlockKey& key, BlockId block);

  // Frees up to `n` blocks that nobody references, leaves first. Returns how many it freed; `evicted` (if given)
  // receives their keys and blocks in order, before they are reused.
  struct Evicted {
    BlockKey key;
    BlockId block;
  };
  int32_t evict(int32_t n, std::vector<Evicted>* evicted = nullptr);

  // Tells the index that the last reference to a named block went away (BlockPool::drop), so it may be evicted.
  void released(BlockId block);

  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  void check_invariants() const;

 private:
  struct Node {
    BlockKey parent;
    BlockId block;
    int32_t n_children = 0;
    bool queued = false;                  // in evictable_
    std::list<BlockKey>::iterator place;  // where, while queued
  };
  using Nodes = std::unordered_map<BlockKey, Node, BlockKeyHash>;

  void queue(const BlockKey& key, Node& node);
  void unqueue(Node& node);
  bool evictable(const Node& node) const { return node.n_children == 0 && pool_.references(node.block) == 0; }

  BlockPool& pool_;
  Nodes nodes_;
  std::unordered_map<int32_t, BlockKey> key_of_block_;
  std::list<BlockKey> evictable_;  // least recently used first
};

}  // namespace gannet::kv
