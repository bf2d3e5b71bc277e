// Constants of the Engram hashes: primes (sizes of the parts of a table), their running sums, and multipliers.
// Source  DeepSeek-V4.1; the multipliers are the first draws of NumPy's default_rng(10007 * layer id).
#pragma once

#include <cstdint>
#include <vector>

#include "model/deepseek_v41/config.h"

namespace gannet::deepseek_v41 {

struct EngramHashConstants {
  std::vector<uint64_t> multiplier;  // [max_ngram], odd
  std::vector<uint64_t> prime;       // [n_columns] n-gram size major, then head
  std::vector<uint64_t> offset;      // [n_columns] sum of the primes before
};

// One entry for each of config.layers. `compressed_vocab` is the size of the token map.
std::vector<EngramHashConstants> engram_hash_constants(const EngramConfig& config, int32_t compressed_vocab);

// NumPy's default_rng(seed).integers(0, bound, size=n, dtype=int64), for a seed below 2^32 and a bound above 2^32:
// SeedSequence, PCG64 and Lemire's rejection, bit for bit.
std::vector<uint64_t> numpy_integers(uint32_t seed, uint64_t bound, int n);

}  // namespace gannet::deepseek_v41
