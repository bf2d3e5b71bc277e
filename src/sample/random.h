// Random numbers of sampling: stateless, a pure function of a key, bit-equal on every CPU and GPU.
//
//   bits     Philox 4x32, 10 rounds (Salmon et al., SC 2011). Key and counter are named below; word w of the result
//            of counter block b belongs to vocabulary id 64*(b/16) + 16*w + b%16, so that 16 neighbouring counters
//            give 64 neighbouring ids in order.
//   uniform  v = min((h + 0.5) * 2^-32, 1 - 2^-24) in fp32, h one word: never 0, never 1.
//   Gumbel   g = -log(-log(1 - v)) in fp32, by the logarithm below. Small v, where the large g come from, keeps its
//            full precision (1 - v is never formed there). -2.82 <= g <= 22.88.
//   log      x = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2));
//            log x = k ln2 + f - f^2/2 + f^3 P(f), P minimax of degree 7 (relative error of the whole 6e-9).
//   exp      x <= 0: 2^k * (1 + r + r^2 Q(r)), Q minimax of degree 4 (relative error 3e-9).
//
// Streams (a draw for one must never be reused for another, or acceptance rules lose their exactness):
//   sample  key = seed;                 counter = (id block, index of the token being sampled, choice, stream)
//   accept, draft
//           key = mix(seed, request);   counter = (id block, anchor's position, choice, stream and slot)
// The sampled token's own absolute index keys `sample`: so the noise of a position does not depend on how many
// steps, drafts or rounds led to it. Drafts and acceptance draws are keyed by the anchor (the last committed
// token), which strictly rises, and the slot in the block: keyed by position, a later round would meet draws that
// already decided where an earlier one stopped.
//
// Every product that meets a sum is an explicit fused multiply-add: compilers that contract (nvcc) and those told
// not to (-ffp-contract=off) compute the same. The formulas are templates over "lanes": one float here, 8 or 16 in
// lanes_avx2.h and lanes_avx512.h. No fmt, no standard containers: this header compiles in CUDA files.
// Equal bits are tested on CPUs (vocab_ops_test.cc); tests/cuda/sample_noise.cu compares a device with its host.
#pragma once

#include <cmath>
#include <cstdint>

// Always inline: files of several instruction sets include this, and a shared copy could be the wrong one.
#ifdef __CUDACC__
#define GANNET_HD __host__ __device__ __forceinline__
#else
#define GANNET_HD [[gnu::always_inline]] inline
#endif

namespace gannet::sample {

enum class Stream : uint32_t { accept = 0, sample = 1, draft = 2 };

// What the noise of one row of logits depends on, besides the vocabulary id.
struct NoiseKey {
  uint32_t key[2];       // low and high word of the seed, or of mix(seed, request)
  uint32_t position;     // index of the sampled token, or of the anchor
  uint32_t choice;       // n > 1: which of a request's choices
  uint32_t stream_slot;  // Stream << 24 | slot
};

// One lane: plain floats.
struct OneLane {
  using F = float;
  using U = uint32_t;
  GANNET_HD static F set(float x) { return x; }
  GANNET_HD static U set_u(uint32_t x) { return x; }
  GANNET_HD static F fma(F a, F b, F c) { return ::fmaf(a, b, c); }
  GANNET_HD static F add(F a, F b) { return a + b; }
  GANNET_HD static F sub(F a, F b) { return a - b; }
  GANNET_HD static F mul(F a, F b) { return a * b; }
  GANNET_HD static F min(F a, F b) { return a < b ? a : b; }
  GANNET_HD static F max(F a, F b) { return a > b ? a : b; }
  GANNET_HD static U bits(F a) { return __builtin_bit_cast(uint32_t, a); }
  GANNET_HD static F from_bits(U a) { return __builtin_bit_cast(float, a); }
  GANNET_HD static U add_u(U a, U b) { return a + b; }
  GANNET_HD static U and_u(U a, U b) { return a & b; }
  GANNET_HD static U xor_u(U a, U b) { return a ^ b; }
  template <int n>
  GANNET_HD static U shift_left(U a) {
    return a << n;
  }
  template <int n>
  GANNET_HD static U shift_right(U a) {
    return a >> n;
  }
  GANNET_HD static F from_unsigned(U a) { return static_cast<float>(a); }
  GANNET_HD static F from_signed(U a) { return static_cast<float>(static_cast<int32_t>(a)); }
  GANNET_HD static F pick_if_zero(U a, F zero, F other) { return a == 0 ? zero : other; }
  GANNET_HD static void mul_wide(U a, uint32_t b, U& high, U& low) {
    const uint64_t product = uint64_t{a} * b;
    high = static_cast<uint32_t>(product >> 32);
    low = static_cast<uint32_t>(product);
  }
};

template <class L>
struct PhiloxWords {
  typename L::U word[4];
};

template <class L>
GANNET_HD PhiloxWords<L> philox(PhiloxWords<L> c, uint32_t key0, uint32_t key1) {
  using U = typename L::U;
  for (int round = 0; round < 10; ++round) {
    U high0, low0, high2, low2;
    L::mul_wide(c.word[0], 0xD2511F53u, high0, low0);
    L::mul_wide(c.word[2], 0xCD9E8D57u, high2, low2);
    c = {{L::xor_u(L::xor_u(high2, c.word[1]), L::set_u(key0)), low2,
          L::xor_u(L::xor_u(high0, c.word[3]), L::set_u(key1)), low0}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

template <class L>
GANNET_HD PhiloxWords<L> noise_words(const NoiseKey& key, typename L::U id_block) {
  return philox<L>({{id_block, L::set_u(key.position), L::set_u(key.choice), L::set_u(key.stream_slot)}},
                   key.key[0], key.key[1]);
}

// fp32 in [2^-33, 1 - 2^-24].
template <class L>
GANNET_HD typename L::F unit_interval(typename L::U h) {
  return L::min(L::fma(L::from_unsigned(h), L::set(0x1p-32f), L::set(0x1p-33f)), L::set(0x1.fffffep-1f));
}

// log((1 + f) * 2^k), f in [sqrt(1/2) - 1, sqrt(2) - 1], k an integer value.
template <class L>
GANNET_HD typename L::F log_reduced(typename L::F f, typename L::F k) {
  using F = typename L::F;
  F p = L::set(-0x1.38b576p-4f);
  p = L::fma(p, f, L::set(0x1.055b68p-3f));
  p = L::fma(p, f, L::set(-0x1.0d8542p-3f));
  p = L::fma(p, f, L::set(0x1.22da1ep-3f));
  p = L::fma(p, f, L::set(-0x1.547244p-3f));
  p = L::fma(p, f, L::set(0x1.99a008p-3f));
  p = L::fma(p, f, L::set(-0x1.000226p-2f));
  p = L::fma(p, f, L::set(0x1.555554p-2f));
  p = L::fma(p, f, L::set(-0.5f));
  const F r = L::fma(p, L::mul(f, f), f);
  return L::fma(k, L::set(0x1.62ep-1f), L::fma(k, L::set(3.194618329871446e-05f), r));  // ln 2 in two pieces
}

template <class L>
struct LogParts {
  typename L::U k;  // two's complement
  typename L::F m;  // in [sqrt(1/2), sqrt(2)): x = 2^k m
};
template <class L>
GANNET_HD LogParts<L> log_parts(typename L::F x) {
  const typename L::U shifted = L::add_u(L::bits(x), L::set_u(0x3F800000u - 0x3F3504F3u));
  return {L::add_u(L::template shift_right<23>(shifted), L::set_u(0u - 127u)),
          L::from_bits(L::add_u(L::and_u(shifted, L::set_u(0x7FFFFFu)), L::set_u(0x3F3504F3u)))};
}

// Natural logarithm of a positive normal number, within 2 ulp.
template <class L>
GANNET_HD typename L::F log_normal(typename L::F x) {
  const LogParts<L> parts = log_parts<L>(x);
  return log_reduced<L>(L::sub(parts.m, L::set(1.0f)), L::from_signed(parts.k));
}

// log(1 - v) for v in (0, 1 - 2^-24], within 4 ulp: 2 as log_normal, 2 more where 1 - v is rounded, v in (0.29,
// 0.5).
template <class L>
GANNET_HD typename L::F log_one_minus(typename L::F v) {
  const LogParts<L> parts = log_parts<L>(L::sub(L::set(1.0f), v));
  const typename L::F f = L::pick_if_zero(parts.k, L::sub(L::set(0.0f), v), L::sub(parts.m, L::set(1.0f)));
  return log_reduced<L>(f, L::from_signed(parts.k));
}

template <class L>
GANNET_HD typename L::F gumbel(typename L::U h) {
  const typename L::F e = L::sub(L::set(0.0f), log_one_minus<L>(unit_interval<L>(h)));  // exponential variate
  return L::sub(L::set(0.0f), log_normal<L>(e));
}
constexpr float kLargestGumbel = 22.88f;

// exp(x) for x <= 0, within 2 ulp; exp(-64) where x is smaller (a NaN counts as that).
template <class L>
GANNET_HD typename L::F exp_negative(typename L::F x) {
  using F = typename L::F;
  x = L::max(x, L::set(-64.0f));
  const F shifter = L::set(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const F t = L::fma(x, L::set(1.4426950216293335f), shifter);
  const F k = L::sub(t, shifter);
  const F r = L::fma(k, L::set(-3.194618329871446e-05f), L::fma(k, L::set(-0x1.62ep-1f), x));
  F q = L::set(0.0013814467238262296f);
  q = L::fma(q, r, L::set(0.008368780836462975f));
  q = L::fma(q, r, L::set(0.04166839271783829f));
  q = L::fma(q, r, L::set(0.1666651964187622f));
  q = L::fma(q, r, L::set(0.4999999403953552f));
  const F p = L::add(L::fma(q, L::mul(r, r), r), L::set(1.0f));
  return L::from_bits(L::add_u(L::bits(p), L::template shift_left<23>(L::bits(t))));  // times 2^k
}

// Probability mass relative to the most likely token, as an integer: round(exp(x) * 2^40) for x <= 0. Sums of these
// are exact and so do not depend on their order; 2^23 of them fit.
constexpr int kMassBits = 40;
GANNET_HD int64_t mass_of(float exp_x) {
  return __builtin_bit_cast(int64_t, static_cast<double>(exp_x) + 4096.0) - __builtin_bit_cast(int64_t, 4096.0);
}
GANNET_HD int64_t mass(float x) { return mass_of(exp_negative<OneLane>(x)); }

// ---- keys and single draws
// ---------------------------------------------------------------------------------------
GANNET_HD NoiseKey sample_key(uint64_t seed, uint32_t choice, uint32_t token_index) {
  return {{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
          token_index,
          choice,
          static_cast<uint32_t>(Stream::sample) << 24};
}
// Of the draft block after the anchor at `anchor_position`; slot < 2^24. `request` tells concurrent requests with
// equal seeds apart.
GANNET_HD NoiseKey block_key(Stream stream, uint64_t seed, uint64_t request, uint32_t choice,
                             uint32_t anchor_position, uint32_t slot) {
  const PhiloxWords<OneLane> mixed =
      philox<OneLane>({{static_cast<uint32_t>(request), static_cast<uint32_t>(request >> 32), 0u, 0xFF000000u}},
                      static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  return {{mixed.word[0], mixed.word[1]}, anchor_position, choice, static_cast<uint32_t>(stream) << 24 | slot};
}

GANNET_HD uint32_t noise_bits(const NoiseKey& key, uint32_t id) {
  const uint32_t block = (id >> 6) << 4 | (id & 15u);
  return noise_words<OneLane>(key, block).word[id >> 4 & 3u];
}
GANNET_HD float uniform(const NoiseKey& key, uint32_t id = 0) {
  return unit_interval<OneLane>(noise_bits(key, id));
}
GANNET_HD float gumbel(const NoiseKey& key, uint32_t id) { return gumbel<OneLane>(noise_bits(key, id)); }

}  // namespace gannet::sample
