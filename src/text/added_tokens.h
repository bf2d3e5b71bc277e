// Finds the spellings of added tokens (control tokens, and others that stand outside the model) in text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gannet {

// A set of added tokens that is searched together. Immutable once built, any thread.
class AddedTokens {
 public:
  struct Entry {
    int32_t id = 0;
    std::string content;  // not empty
    bool single_word = false, lstrip = false, rstrip = false;
    bool text = false;  // structures nothing: may stand in text of any owner
  };
  // A match: the bytes it takes, stripped blanks included.
  struct Match {
    size_t begin, end;
    int32_t id;
  };

  // Of entries with equal content the last one counts. Refuses contents of more than kMaxContentBytes.
  static Result<AddedTokens> build(std::vector<Entry> entries);

  // All matches, in order: at each place the longest one that may match, contents not overlapping. `client` says
  // the owner of each byte (1 = client_owned); bytes of clients match only entries that are `text`. O(bytes *
  // longest content).
  void find(std::string_view text, std::string_view client, std::vector<Match>& out) const;

  bool empty() const { return entries_.empty(); }

  static constexpr size_t kMaxContentBytes = 1024;

 private:
  struct Node {
    int32_t entry = -1;        // that ends here
    uint32_t first_child = 0;  // children lie together, sorted by byte
    uint16_t n_children = 0;
    uint8_t byte = 0;
  };
  const Node* child(const Node& node, char byte) const;
  const Entry* longest(std::string_view text, std::string_view client, size_t at) const;
  bool allowed(const Entry& entry, std::string_view text, std::string_view client, size_t at) const;

  std::vector<Entry> entries_;        // sorted by content
  std::vector<Node> nodes_;           // a trie; 0 is the root
  std::array<int32_t, 256> first_{};  // child of the root by byte, or -1
};

}  // namespace gannet
