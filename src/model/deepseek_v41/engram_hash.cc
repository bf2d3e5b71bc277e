#include "model/deepseek_v41/engram_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_set>

#include "base/check.h"

namespace gannet::deepseek_v41 {
namespace {

__extension__ using uint128 = unsigned __int128;

bool is_prime(uint64_t n) {
  if (n < 2) return false;
  for (uint64_t d = 2; d * d <= n; ++d)  // n is about 2^24: a few thousand divisions, once at load
    if (n % d == 0) return false;
  return true;
}

// Melissa O'Neill's seed sequence as NumPy has it, for an entropy of one 32-bit word.
std::array<uint64_t, 4> seed_words(uint32_t seed) {
  uint32_t hash = 0x43b0d7e5u;
  const auto hash_mix = [&](uint32_t v) {
    v ^= hash;
    hash *= 0x931e8875u;
    v *= hash;
    return v ^ v >> 16;
  };
  const auto mix = [](uint32_t x, uint32_t y) {
    const uint32_t t = 0xca01f9ddu * x - 0x4973f715u * y;
    return t ^ t >> 16;
  };
  std::array<uint32_t, 4> pool{};
  for (size_t i = 0; i < 4; ++i) pool[i] = hash_mix(i == 0 ? seed : 0);
  for (size_t s = 0; s < 4; ++s)
    for (size_t t = 0; t < 4; ++t)
      if (s != t) pool[t] = mix(pool[t], hash_mix(pool[s]));
  uint32_t state = 0x8b51f9ddu;
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < 8; ++i) {
    uint32_t v = pool[i % 4] ^ state;
    state *= 0x58f38dedu;
    v *= state;
    v ^= v >> 16;
    words[i / 2] |= uint64_t{v} << (i % 2 == 0 ? 0 : 32);
  }
  return words;
}

// O'Neill's PCG XSL-RR 128/64.
class Pcg64 {
 public:
  explicit Pcg64(uint32_t seed) {
    const std::array<uint64_t, 4> u = seed_words(seed);
    increment_ = (uint128{u[2]} << 64 | u[3]) << 1 | 1;
    step();
    state_ += uint128{u[0]} << 64 | u[1];
    step();
  }
  uint64_t next() {
    step();
    const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
    return std::rotr(folded, static_cast<int>(state_ >> 122));
  }

 private:
  void step() { state_ = state_ * (uint128{0x2360ed051fc65da4u} << 64 | 0x4385df649fccf645u) + increment_; }
  uint128 state_ = 0, increment_ = 0;
};

}  // namespace

std::vector<uint64_t> numpy_integers(uint32_t seed, uint64_t bound, int n) {
  GANNET_CHECK(bound > uint64_t{1} << 32, "bounds up to 2^32 take another path in NumPy");
  Pcg64 random(seed);
  std::vector<uint64_t> out;
  for (int i = 0; i < n; ++i) {
    uint128 product = uint128{random.next()} * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t threshold = (0 - bound) % bound;
      while (static_cast<uint64_t>(product) < threshold) product = uint128{random.next()} * bound;
    }
    out.push_back(static_cast<uint64_t>(product >> 64));
  }
  return out;
}

std::vector<EngramHashConstants> engram_hash_constants(const EngramConfig& config, int32_t compressed_vocab) {
  constexpr uint32_t kSeedStride = 10007;
  const auto largest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const uint64_t bound = std::max<uint64_t>(1, largest / static_cast<uint64_t>(compressed_vocab) / 2);
  std::unordered_set<uint64_t> taken;  // no two columns of the model share a prime
  std::vector<EngramHashConstants> all;
  for (const int32_t layer : config.layers) {
    EngramHashConstants& layer_constants = all.emplace_back();
    uint64_t sum = 0;
    for (int32_t n = 2; n <= config.max_ngram; ++n) {
      auto candidate = static_cast<uint64_t>(config.vocab_size) - 1;
      for (int32_t head = 0; head < config.n_heads; ++head) {
        do ++candidate;
        while (!is_prime(candidate) || taken.contains(candidate));
        taken.insert(candidate);
        layer_constants.prime.push_back(candidate);
        layer_constants.offset.push_back(sum);
        sum += candidate;
      }
    }
    for (const uint64_t u : numpy_integers(kSeedStride * static_cast<uint32_t>(layer), bound, config.max_ngram))
      layer_constants.multiplier.push_back(2 * u + 1);
  }
  return all;
}

}  // namespace gannet::deepseek_v41
