// Which KV block belongs to whom: reference counts and the free list. Host only; knows no memory.
//
// A block is free, held (one or more references) or kept (no reference, but a prefix index still names it, so its
// content may be found again). Owner: the engine thread; counts are not atomic.
#pragma once

#include <cstdint>
#include <vector>

namespace gannet::kv {

enum class BlockId : int32_t {};
constexpr BlockId kNoBlock{-1};
constexpr int32_t index_of(BlockId block) { return static_cast<int32_t>(block); }

class BlockPool {
 public:
  explicit BlockPool(int32_t n_blocks);

  int32_t size() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t n_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t n_kept() const { return n_kept_; }
  int32_t n_held() const { return size() - n_free() - n_kept_; }

  // Takes a free block, with one reference; kNoBlock when none is free (the caller may evict kept ones first).
  BlockId take();
  // One more reference to a held or kept block.
  void hold(BlockId block);
  // One reference less. With the last one gone the block becomes kept if it is named, else free.
  void drop(BlockId block);

  // A prefix index names the block, or stops naming it. An unnamed block without references becomes free.
  void name(BlockId block);
  void unname(BlockId block);

  int32_t references(BlockId block) const { return at(block).references; }
  bool named(BlockId block) const { return at(block).named; }

  void check_invariants() const;  // aborts on a broken count

 private:
  struct Block {
    int32_t references = 0;
    bool named = false;
  };
  Block& at(BlockId block);
  const Block& at(BlockId block) const;

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // the most recently freed last: its memory is likeliest to be in cache
  int32_t n_kept_ = 0;
};

}  // namespace gannet::kv
