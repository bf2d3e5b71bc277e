#include <fmt/format.h>

#include <queue>

#include "text/bpe.h"
#include "text/unicode.h"

namespace gannet {

ScoredBpe::ScoredBpe(const Vocabulary* vocabulary, std::vector<float> scores, int32_t unk_id)
    : vocabulary_(vocabulary), scores_(std::move(scores)), unk_id_(unk_id) {
  for (int b = 0; b < 256; ++b) {
    const int32_t id = vocabulary->find_model(fmt::format("<0x{:02X}>", b));
    byte_token_[b] = id >= 0 && vocabulary->at(id).has(Token::kByte) ? id : -1;
  }
}

// A token that text may produce: no control, byte or unknown token.
int32_t ScoredBpe::find(std::string_view text) const {
  const int32_t id = vocabulary_->find_model(text);
  if (id < 0 || id == unk_id_ || vocabulary_->at(id).has(Token::kControl | Token::kByte)) return -1;
  return id;
}

void ScoredBpe::encode(std::string_view piece, std::vector<int32_t>& out) const {
  struct Symbol {
    uint32_t begin, size;  // 0 bytes: joined into an earlier one
    int32_t previous, next, id;
  };
  struct Candidate {
    float score;
    int32_t left, right, id;
    uint32_t size;  // of both together, when offered
    bool operator<(const Candidate& o) const { return score != o.score ? score < o.score : left > o.left; }
  };
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  const char* end = piece.data() + piece.size();
  for (const char* p = piece.data(); p < end;) {
    const uint32_t size = char_at(p, end).size;
    const auto i = static_cast<int32_t>(symbols.size());
    symbols.push_back({static_cast<uint32_t>(p - piece.data()), size, i - 1, i + 1, find({p, size})});
    p += size;
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  std::priority_queue<Candidate> queue;
  const auto offer = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const Symbol& a = symbols[static_cast<size_t>(left)];
    const uint32_t size = a.size + symbols[static_cast<size_t>(right)].size;
    const int32_t id = find(piece.substr(a.begin, size));
    if (id >= 0) queue.push({scores_[static_cast<size_t>(id)], left, right, id, size});
  };
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i) offer(i, i + 1);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<size_t>(top.left)];
    Symbol& right = symbols[static_cast<size_t>(top.right)];
    if (left.size == 0 || right.size == 0 || left.size + right.size != top.size) continue;  // stale
    left.size = top.size;
    left.id = top.id;
    left.next = right.next;
    right.size = 0;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = top.left;
    offer(left.previous, top.left);
    offer(top.left, left.next);
  }
  for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    const Symbol& symbol = symbols[static_cast<size_t>(i)];
    if (symbol.id >= 0)
      out.push_back(symbol.id);
    else
      append_unknown(piece.substr(symbol.begin, symbol.size), out);
  }
}

// A character that no token spells: its byte tokens where all exist, else the unknown token where there is one.
void ScoredBpe::append_unknown(std::string_view character, std::vector<int32_t>& out) const {
  bool all = true;
  for (const char b : character) all = all && byte_token_[static_cast<unsigned char>(b)] >= 0;
  if (all) {
    for (const char b : character) out.push_back(byte_token_[static_cast<unsigned char>(b)]);
  } else if (unk_id_ >= 0) {
    out.push_back(unk_id_);
  }
}

}  // namespace gannet
