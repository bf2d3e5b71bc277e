// The passes of vocab_ops.h over lanes. Only for vocab_ops_*.cc: each instantiates it for lanes of its own type.
#pragma once

#include <cstdint>
#include <limits>

#include "sample/random.h"

namespace gannet::sample {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

struct Best {
  float value = kLowest;
  int32_t index = -1;
};

// The better of lanes and of the tail [begin, n) that does not fill them; `score(i)` gives element i.
template <class L, class Score>
inline int32_t best_of(typename L::F best, typename L::U best_index, int32_t begin, int32_t n, const Score& score) {
  float value[L::n];
  float index[L::n];
  L::store(value, best);
  L::store(index, L::from_bits(best_index));
  Best winner;
  for (int lane = 0; lane < L::n; ++lane) {
    const auto i = static_cast<int32_t>(OneLane::bits(index[lane]));
    if (i >= 0 && (value[lane] > winner.value || (value[lane] == winner.value && i < winner.index)))
      winner = {value[lane], i};
  }
  for (int32_t i = begin; i < n; ++i)
    if (const float value_i = score(i); value_i > winner.value) winner = {value_i, i};
  return winner.index;
}

template <class L>
int32_t argmax_lanes(const float* x, int32_t n) {
  typename L::F best = L::set(kLowest);
  typename L::U best_index = L::set_u(~0u);
  int32_t i = 0;
  for (; i + L::n <= n; i += L::n)
    L::keep_larger(L::load(x + i), L::count_from(static_cast<uint32_t>(i)), best, best_index);
  return best_of<L>(best, best_index, i, n, [x](int32_t j) { return x[j]; });
}

[[gnu::always_inline]] inline float scale_one(float x, float largest, float temperature) {
  const float scaled = (x - largest) / temperature;
  return scaled <= 0 ? scaled : kLowest;  // a NaN
}

template <class L>
void scale_lanes(const float* x, int32_t n, float largest, float temperature, float* out) {
  const typename L::F lowest = L::set(kLowest);
  int32_t i = 0;
  for (; i + L::n <= n; i += L::n)
    L::store(out + i, L::max(L::div(L::sub(L::load(x + i), L::set(largest)), L::set(temperature)), lowest));
  for (; i < n; ++i) out[i] = scale_one(x[i], largest, temperature);
}

template <class L>
int64_t total_mass_lanes(const float* x, int32_t n, float largest) {
  typename L::Mass sum = L::no_mass();
  int32_t i = 0;
  for (; i + L::n <= n; i += L::n) sum = L::add_mass(sum, exp_negative<L>(L::sub(L::load(x + i), L::set(largest))));
  int64_t total = L::total(sum);
  for (; i < n; ++i) total += mass(x[i] - largest);
  return total;
}

template <class L>
void exp_lanes(const float* x, int32_t n, float* out) {
  int32_t i = 0;
  for (; i + L::n <= n; i += L::n) L::store(out + i, exp_negative<L>(L::load(x + i)));
  for (; i < n; ++i) out[i] = exp_negative<OneLane>(x[i]);
}

// 64 ids at a time, because 16 counters give 64 words. A block whose largest x could not win with the largest noise
// there is needs no noise: that skips nearly everything where the model is sure.
template <class L>
int32_t noisy_argmax_lanes(const float* x, int32_t n, const NoiseKey& key) {
  using F = typename L::F;
  using U = typename L::U;
  F best = L::set(kLowest);
  U best_index = L::set_u(~0u);
  int32_t id = 0;
  for (; id + 64 <= n; id += 64) {
    F largest = L::load(x + id);
    for (int32_t i = L::n; i < 64; i += L::n) largest = L::max(L::load(x + id + i), largest);
    if (!L::any_greater(L::add(largest, L::set(kLargestGumbel)), best)) continue;
    for (int32_t part = 0; part < 16; part += L::n) {
      const PhiloxWords<L> words = noise_words<L>(key, L::count_from(static_cast<uint32_t>(id / 4 + part)));
      for (int32_t w = 0; w < 4; ++w) {
        const int32_t first = id + 16 * w + part;
        L::keep_larger(L::add(L::load(x + first), gumbel<L>(words.word[w])),
                       L::count_from(static_cast<uint32_t>(first)), best, best_index);
      }
    }
  }
  return best_of<L>(best, best_index, id, n,
                    [&](int32_t i) { return x[i] + gumbel(key, static_cast<uint32_t>(i)); });
}

}  // namespace gannet::sample
