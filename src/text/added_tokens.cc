#include "text/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/unicode.h"

namespace gannet {

Result<AddedTokens> AddedTokens::build(std::vector<Entry> entries) {
  AddedTokens out;
  for (const Entry& entry : entries)
    if (entry.content.size() > kMaxContentBytes)
      return Error{Errc::unsupported, fmt::format("tokenizer: added token {} has {} bytes, more than {}", entry.id,
                                                  entry.content.size(), kMaxContentBytes)};
  std::reverse(entries.begin(), entries.end());
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.content < b.content; });
  for (Entry& entry : entries)
    if (!entry.content.empty() && (out.entries_.empty() || out.entries_.back().content != entry.content))
      out.entries_.push_back(std::move(entry));

  // Breadth first: a node covers a range of entries that share `depth` bytes.
  struct Range {
    uint32_t node, begin, end;
    size_t depth;
  };
  out.nodes_.push_back({});
  std::vector<Range> todo{{0, 0, static_cast<uint32_t>(out.entries_.size()), 0}};
  for (size_t next = 0; next < todo.size(); ++next) {
    const Range range = todo[next];
    uint32_t i = range.begin;
    if (i < range.end && out.entries_[i].content.size() == range.depth)
      out.nodes_[range.node].entry = static_cast<int32_t>(i++);
    out.nodes_[range.node].first_child = static_cast<uint32_t>(out.nodes_.size());
    while (i < range.end) {
      const char byte = out.entries_[i].content[range.depth];
      const uint32_t begin = i;
      while (i < range.end && out.entries_[i].content[range.depth] == byte) ++i;
      todo.push_back({static_cast<uint32_t>(out.nodes_.size()), begin, i, range.depth + 1});
      out.nodes_.push_back({.byte = static_cast<uint8_t>(byte)});
      ++out.nodes_[range.node].n_children;
    }
  }
  out.first_.fill(-1);
  const Node& root = out.nodes_[0];
  for (uint32_t c = 0; c < root.n_children; ++c)
    out.first_[out.nodes_[root.first_child + c].byte] = static_cast<int32_t>(root.first_child + c);
  return out;
}

const AddedTokens::Node* AddedTokens::child(const Node& node, char byte) const {
  const Node* begin = nodes_.data() + node.first_child;
  const Node* end = begin + node.n_children;
  const auto wanted = static_cast<uint8_t>(byte);
  const Node* found = std::lower_bound(begin, end, wanted, [](const Node& n, uint8_t b) { return n.byte < b; });
  return found != end && found->byte == wanted ? found : nullptr;
}

bool AddedTokens::allowed(const Entry& entry, std::string_view text, std::string_view client, size_t at) const {
  const size_t end = at + entry.content.size();
  if (!entry.text && client.substr(at, end - at).find('\1') != std::string_view::npos) return false;
  if (!entry.single_word) return true;
  const char* const begin = text.data();
  const char* const stop = begin + text.size();
  const bool word_before = at > 0 && is_word_char(char_before(begin, begin + at).code_point);
  const bool word_after = end < text.size() && is_word_char(char_at(begin + end, stop).code_point);
  return !word_before && !word_after;
}

const AddedTokens::Entry* AddedTokens::longest(std::string_view text, std::string_view client, size_t at) const {
  const int32_t first = first_[static_cast<unsigned char>(text[at])];
  const Entry* best = nullptr;
  const Node* node = first < 0 ? nullptr : &nodes_[static_cast<size_t>(first)];
  for (size_t i = at + 1; node != nullptr; ++i) {
    if (node->entry >= 0) {
      const Entry& entry = entries_[static_cast<size_t>(node->entry)];
      if (allowed(entry, text, client, at)) best = &entry;
    }
    node = i < text.size() ? child(*node, text[i]) : nullptr;
  }
  return best;
}

void AddedTokens::find(std::string_view text, std::string_view client, std::vector<Match>& out) const {
  size_t free = 0;  // bytes before are taken
  for (size_t at = 0; at < text.size();) {
    const Entry* entry = longest(text, client, at);
    if (entry == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + entry->content.size();
    at = end;
    if (entry->lstrip)
      while (begin > free && char_before(text.data() + free, text.data() + begin).is(kSpace))
        begin -= char_before(text.data() + free, text.data() + begin).size;
    if (entry->rstrip)
      while (end < text.size() && char_at(text.data() + end, text.data() + text.size()).is(kSpace))
        end += char_at(text.data() + end, text.data() + text.size()).size;
    // The search goes on behind the content, not behind the blanks: an added token that is blank follows even where
    // rstrip has taken its bytes, as in the library that such files are made for.
    free = end;
    out.push_back({begin, end, entry->id});
  }
}

}  // namespace gannet
