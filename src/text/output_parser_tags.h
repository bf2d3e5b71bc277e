// Finds any of a few tags in a stream of bytes. Internal to text/.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gannet {

// Aho-Corasick automaton over a handful of short tags. One step a byte. After each step depth() is the length of
// the longest suffix of the stream that could still become a tag: exactly what has to be held back.
class TagAutomaton {
 public:
  // No tag may be a suffix of another (the longer one would hide it).
  explicit TagAutomaton(std::vector<std::string_view> tags);

  int32_t root() const { return 0; }
  int32_t step(int32_t state, char byte) const {
    return nodes_[static_cast<size_t>(state)].next[static_cast<unsigned char>(byte)];
  }
  int32_t depth(int32_t state) const { return nodes_[static_cast<size_t>(state)].depth; }
  // Index of the tag that ends here, or -1.
  int32_t match(int32_t state) const { return nodes_[static_cast<size_t>(state)].tag; }

 private:
  struct Node {
    std::array<int32_t, 256> next{};
    int32_t depth = 0;
    int32_t tag = -1;
  };
  std::vector<Node> nodes_;
};

}  // namespace gannet
