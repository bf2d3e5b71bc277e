#include "kv/index/block_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gannet::kv {

BlockPool::BlockPool(int32_t n_blocks) : blocks_(static_cast<size_t>(n_blocks)) {
  for (int32_t i = n_blocks - 1; i >= 0; --i) free_.push_back(BlockId{i});
}

BlockPool::Block& BlockPool::at(BlockId block) { return const_cast<Block&>(std::as_const(*this).at(block)); }

const BlockPool::Block& BlockPool::at(BlockId block) const {
  GANNET_CHECK(index_of(block) >= 0 && index_of(block) < size(), "block {} of {}", index_of(block), size());
  return blocks_[static_cast<size_t>(index_of(block))];
}

BlockId BlockPool::take() {
  if (free_.empty()) return kNoBlock;
  const BlockId block = free_.back();
  free_.pop_back();
  at(block).references = 1;
  return block;
}

void BlockPool::hold(BlockId block) {
  Block& b = at(block);
  GANNET_CHECK(b.references > 0 || b.named, "block {} is free", index_of(block));
  if (b.references++ == 0) --n_kept_;
}

void BlockPool::drop(BlockId block) {
  Block& b = at(block);
  GANNET_CHECK(b.references > 0, "block {} has no reference", index_of(block));
  if (--b.references > 0) return;
  if (b.named)
    ++n_kept_;
  else
    free_.push_back(block);
}

void BlockPool::name(BlockId block) {
  Block& b = at(block);
  GANNET_CHECK(b.references > 0 && !b.named, "block {} cannot be named", index_of(block));
  b.named = true;
}

void BlockPool::unname(BlockId block) {
  Block& b = at(block);
  GANNET_CHECK(b.named, "block {} is not named", index_of(block));
  b.named = false;
  if (b.references > 0) return;
  --n_kept_;
  free_.push_back(block);
}

void BlockPool::check_invariants() const {
  int32_t n_free = 0, n_kept = 0;
  for (const Block& b : blocks_) {
    GANNET_CHECK(b.references >= 0, "{} references", b.references);
    n_free += b.references == 0 && !b.named;
    n_kept += b.references == 0 && b.named;
  }
  GANNET_CHECK(n_free == this->n_free() && n_kept == n_kept_, "{} free, {} kept", n_free, n_kept);
  std::vector<BlockId> sorted = free_;
  std::sort(sorted.begin(), sorted.end());
  GANNET_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "a block is free twice");
  for (const BlockId block : free_)
    GANNET_CHECK(at(block).references == 0 && !at(block).named, "block {} is in use", index_of(block));
}

}  // namespace gannet::kv
