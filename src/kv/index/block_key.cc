#include "kv/index/block_key.h"

#include <openssl/sha.h>

#include <cstring>

namespace gannet::kv {
namespace {

// Collects length-prefixed fields and hashes them once.
class Hasher {
 public:
  void field(const void* data, size_t size) {
    const uint64_t length = size;
    append(&length, sizeof length);
    append(data, size);
  }
  BlockKey finish() const {
    BlockKey key;
    ::SHA256(bytes_.data(), bytes_.size(), key.data());
    return key;
  }

 private:
  void append(const void* data, size_t size) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
  }
  std::basic_string<uint8_t> bytes_;
};

}  // namespace

BlockKey root_key(const KeyDomain& domain) {
  Hasher hasher;
  constexpr std::string_view kFormat = "gannet kv 1";
  hasher.field(kFormat.data(), kFormat.size());
  for (const std::string* part :
       {&domain.weights, &domain.layout, &domain.kernels, &domain.numerics, &domain.adapter, &domain.tenant})
    hasher.field(part->data(), part->size());
  return hasher.finish();
}

BlockKey next_key(const BlockKey& parent, std::span<const int32_t> tokens, std::string_view content) {
  Hasher hasher;
  hasher.field(parent.data(), parent.size());
  hasher.field(tokens.data(), tokens.size_bytes());
  hasher.field(content.data(), content.size());
  return hasher.finish();
}

size_t BlockKeyHash::operator()(const BlockKey& key) const {
  size_t hash;
  std::memcpy(&hash, key.data(), sizeof hash);
  return hash;
}

}  // namespace gannet::kv
