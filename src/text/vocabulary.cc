#include "text/vocabulary.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "text/byte_alphabet.h"

namespace gannet {
namespace {

constexpr int kMaxProbes = 1024;  // honest vocabularies need below 50 at half load

uint32_t hash_of(std::string_view key) {
  uint64_t h = 0x9E3779B97F4A7C15ull ^ key.size();
  const char* p = key.data();
  size_t left = key.size();
  const auto mix = [&h](uint64_t word) {
    h = (h ^ word) * 0xD6E8FEB86659FD93ull;
    h ^= h >> 32;
  };
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, p, left);
  mix(tail);
  return static_cast<uint32_t>(h * 0xD6E8FEB86659FD93ull >> 32);
}

}  // namespace

void StringTable::reserve(size_t n) {
  const size_t want = std::bit_ceil(std::max<size_t>(16, n * 2));
  if (want > slots_.size()) grow(want);
}

int32_t StringTable::find(std::string_view key, const std::string& arena) const {
  if (slots_.empty()) return -1;
  const uint32_t hash = hash_of(key);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.id < 0) return -1;
    if (slot.hash == hash && slot.size == key.size() &&
        std::memcmp(arena.data() + slot.begin, key.data(), key.size()) == 0)
      return slot.id;
  }
}

bool StringTable::insert(uint32_t begin, uint32_t size, int32_t id, const std::string& arena) {
  if ((n_used_ + 1) * 2 > slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  const std::string_view key(arena.data() + begin, size);
  const uint32_t hash = hash_of(key);
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  for (int probes = 0; slots_[i].id >= 0; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.hash == hash && slot.size == size && std::memcmp(arena.data() + slot.begin, key.data(), size) == 0) {
      slots_[i].id = id;
      return true;
    }
    if (++probes == kMaxProbes) return false;
  }
  slots_[i] = {begin, size, hash, id};
  ++n_used_;
  return true;
}

void StringTable::grow(size_t n_slots) {
  std::vector<Slot> old(n_slots);
  old.swap(slots_);
  const size_t mask = n_slots - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    size_t i = slot.hash & mask;
    while (slots_[i].id >= 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

void Vocabulary::reserve(size_t n_tokens, size_t n_bytes) {
  arena_.reserve(n_bytes);
  tokens_.reserve(n_tokens);
  model_.reserve(n_tokens);
}

Status Vocabulary::put(std::string_view bytes, int32_t id, unsigned flags, StringTable& table) {
  if (arena_.size() + bytes.size() > UINT32_MAX)
    return Error{Errc::bad_file, "tokenizer: tokens of more than 4 GiB"};
  if (id >= size()) tokens_.resize(static_cast<size_t>(id) + 1);
  Token& token = tokens_[static_cast<size_t>(id)];
  const auto begin = static_cast<uint32_t>(arena_.size());
  arena_.append(bytes);
  token = {begin, static_cast<uint32_t>(bytes.size()),
           static_cast<uint16_t>(token.flags | flags | Token::kPresent)};
  if (!table.insert(begin, token.size, id, arena_))
    return Error{Errc::bad_file,
                 fmt::format("tokenizer: over {} tokens share a hash, last '{}'", kMaxProbes, bytes)};
  return ok();
}

Status Vocabulary::add(std::string_view spelling, int32_t id) {
  if (!byte_level_) return put(spelling, id, Token::kModel, model_);
  scratch_.resize(spelling.size());
  const int64_t n = bytes_from_alphabet(spelling, scratch_.data());
  if (n < 0) return put(spelling, id, Token::kModel, spelled_);
  const std::string_view bytes(scratch_.data(), static_cast<size_t>(n));
  return put(bytes, id, Token::kModel | Token::kMapped, model_);
}

Status Vocabulary::add_added(std::string_view content, int32_t id, bool special) {
  const unsigned flags = unsigned{Token::kAdded} | (special ? unsigned{Token::kSpecial} : 0u);
  if (has(id)) tokens_[static_cast<size_t>(id)].flags &= static_cast<uint16_t>(~Token::kMapped);
  return put(content, id, flags, added_);
}

std::string Vocabulary::spelling(int32_t id) const {
  if (at(id).has(Token::kMapped)) return bytes_to_alphabet(bytes(id));
  return std::string(bytes(id));
}

int32_t Vocabulary::find_model(std::string_view bytes) const { return model_.find(bytes, arena_); }

int32_t Vocabulary::find_spelling(std::string_view spelling) const {
  if (const int32_t id = added_.find(spelling, arena_); id >= 0) return id;
  if (!byte_level_) return model_.find(spelling, arena_);
  if (const auto bytes = bytes_from_alphabet(spelling)) return model_.find(*bytes, arena_);
  return spelled_.find(spelling, arena_);
}

}  // namespace gannet
