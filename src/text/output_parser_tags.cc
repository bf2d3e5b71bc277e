#include "text/output_parser_tags.h"

namespace gannet {

TagAutomaton::TagAutomaton(std::vector<std::string_view> tags) : nodes_(1) {
  for (auto& next : nodes_[0].next) next = -1;
  for (size_t i = 0; i < tags.size(); ++i) {
    size_t at = 0;
    for (const char c : tags[i]) {
      const auto byte = static_cast<unsigned char>(c);
      if (nodes_[at].next[byte] < 0) {
        nodes_[at].next[byte] = static_cast<int32_t>(nodes_.size());
        Node node;
        node.next.fill(-1);
        node.depth = nodes_[at].depth + 1;
        nodes_.push_back(node);
      }
      at = static_cast<size_t>(nodes_[at].next[byte]);
    }
    nodes_[at].tag = static_cast<int32_t>(i);
  }
  // Missing edges lead where the longest proper suffix would; nodes are visited by rising depth.
  std::vector<int32_t> fallback(nodes_.size(), 0), queue{0};
  for (size_t head = 0; head < queue.size(); ++head) {
    const auto at = static_cast<size_t>(queue[head]);
    for (size_t byte = 0; byte < 256; ++byte) {
      int32_t& next = nodes_[at].next[byte];
      const int32_t other = at == 0 ? 0 : nodes_[static_cast<size_t>(fallback[at])].next[byte];
      if (next < 0) {
        next = other;
        continue;
      }
      fallback[static_cast<size_t>(next)] = other;
      queue.push_back(next);
    }
  }
}

}  // namespace gannet
