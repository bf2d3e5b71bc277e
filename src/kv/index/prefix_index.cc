#include "kv/index/prefix_index.h"

#include "base/check.h"

namespace gannet::kv {

void PrefixIndex::queue(const BlockKey& key, Node& node) {
  if (node.queued) return;
  node.place = evictable_.insert(evictable_.end(), key);
  node.queued = true;
}

void PrefixIndex::unqueue(Node& node) {
  if (!node.queued) return;
  evictable_.erase(node.place);
  node.queued = false;
}

std::vector<BlockId> PrefixIndex::match(std::span<const BlockKey> keys) {
  std::vector<BlockId> blocks;
  for (const BlockKey& key : keys) {
    const auto it = nodes_.find(key);
    if (it == nodes_.end()) break;
    unqueue(it->second);
    pool_.hold(it->second.block);
    blocks.push_back(it->second.block);
  }
  return blocks;
}

int32_t PrefixIndex::match_length(std::span<const BlockKey> keys) const {
  int32_t n = 0;
  for (const BlockKey& key : keys) {
    if (!nodes_.contains(key)) break;
    ++n;
  }
  return n;
}

BlockId PrefixIndex::insert(const BlockKey& parent, const BlockKey& key, BlockId block) {
  const auto [it, fresh] = nodes_.try_emplace(key);
  if (!fresh) {
    unqueue(it->second);
    pool_.hold(it->second.block);
    pool_.drop(block);
    return it->second.block;
  }
  it->second.parent = parent;
  it->second.block = block;
  pool_.name(block);
  key_of_block_.emplace(index_of(block), key);
  if (const auto up = nodes_.find(parent); up != nodes_.end()) {
    ++up->second.n_children;
    unqueue(up->second);
  }
  return block;
}

int32_t PrefixIndex::evict(int32_t n, std::vector<Evicted>* evicted) {
  int32_t freed = 0;
  while (freed < n && !evictable_.empty()) {
    const BlockKey key = evictable_.front();
    const auto it = nodes_.find(key);
    GANNET_CHECK(it != nodes_.end() && evictable(it->second), "a queued node cannot be evicted");
    const Node node = it->second;
    evictable_.pop_front();
    nodes_.erase(it);
    key_of_block_.erase(index_of(node.block));
    if (evicted != nullptr) evicted->push_back({key, node.block});
    pool_.unname(node.block);
    ++freed;
    const auto up = nodes_.find(node.parent);
    if (up == nodes_.end()) continue;
    --up->second.n_children;
    if (!evictable(up->second)) continue;
    // The parent was used no later than its child: it goes next, not behind younger chains.
    up->second.place = evictable_.insert(evictable_.begin(), node.parent);
    up->second.queued = true;
  }
  return freed;
}

void PrefixIndex::released(BlockId block) {
  const auto key = key_of_block_.find(index_of(block));
  if (key == key_of_block_.end()) return;
  const auto it = nodes_.find(key->second);
  if (evictable(it->second)) queue(it->first, it->second);
}

void PrefixIndex::check_invariants() const {
  pool_.check_invariants();
  std::unordered_map<BlockKey, int32_t, BlockKeyHash> children;
  int32_t n_queued = 0;
  for (const auto& [key, node] : nodes_) {
    GANNET_CHECK(pool_.named(node.block), "block {} lost its name", index_of(node.block));
    GANNET_CHECK(key_of_block_.at(index_of(node.block)) == key, "block {} has another key", index_of(node.block));
    GANNET_CHECK(node.queued == evictable(node), "block {}: queued {}", index_of(node.block), node.queued);
    n_queued += node.queued;
    if (nodes_.contains(node.parent)) ++children[node.parent];
  }
  GANNET_CHECK(key_of_block_.size() == nodes_.size());
  GANNET_CHECK(n_queued == static_cast<int32_t>(evictable_.size()), "{} queued, {} listed", n_queued,
               static_cast<long long>(evictable_.size()));
  for (const auto& [key, node] : nodes_) {
    const auto it = children.find(key);
    GANNET_CHECK(node.n_children == (it == children.end() ? 0 : it->second), "{} children", node.n_children);
  }
}

}  // namespace gannet::kv
