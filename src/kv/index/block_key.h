// Content address of a KV block: a SHA-256 chain over everything that determines its bytes. Two prefixes get one
// key only if they are the same tokens under the same domain, so a hit needs no comparison of tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gannet::kv {

using BlockKey = std::array<uint8_t, 32>;

// What besides tokens decides the bytes of a block. Every field enters the chain with its length before it.
struct KeyDomain {
  std::string weights;   // checksum or identity of the model's weights
  std::string layout;    // KV format and its version
  std::string kernels;   // fingerprint of the kernel variants that affect KV bytes
  std::string numerics;  // "precise", ... and approximate modes by name
  std::string adapter;   // empty: none
  std::string tenant;    // salt: tenants that must not see each other's timing differ here
};

// The key before the first block.
BlockKey root_key(const KeyDomain& domain);

// The key of the block that holds `tokens` after the prefix `parent`. `content` replaces what token ids cannot say
// (hashes of image pixels), empty for text.
BlockKey next_key(const BlockKey& parent, std::span<const int32_t> tokens, std::string_view content = {});

struct BlockKeyHash {
  size_t operator()(const BlockKey& key) const;  // the key is uniform already: its first bytes
};

}  // namespace gannet::kv
