#include "sample/filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gannet::sample {
namespace {

// ---- whole vocabulary: bins of width 1/64 in x, the last for everything below -32
// ----------------------------------
constexpr int32_t kBins = 2048;
int32_t bin_of(float x) { return static_cast<int32_t>(-64.0f * std::max(x, -31.99f)); }

// Bins before `bin` are kept whole; of that bin, the first tokens that make up `rest`.
struct Cut {
  int32_t bin = kBins;
  int64_t rest = 0;
  // Smallest x in the bin: bin_of(x) <= bin exactly where x >= edge(), because 64 x has no rounding.
  float edge() const {
    if (bin >= kBins - 1) return std::numeric_limits<float>::lowest();
    return std::nextafter(-static_cast<float>(bin + 1) / 64, 0.0f);
  }
};

// `amount(i)` of token i; `target_of(total)` is what the kept ones must reach.
template <class Amount, class TargetOf>
Cut find_cut(std::span<const float> x, float lowest, const Amount& amount, const TargetOf& target_of) {
  std::array<int64_t, kBins> bins{};
  int64_t total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t a = x[i] >= lowest ? amount(i) : 0;
    bins[static_cast<size_t>(bin_of(x[i]))] += a;
    total += a;
  }
  Cut cut{0, target_of(total)};
  while (cut.bin < kBins && bins[static_cast<size_t>(cut.bin)] < cut.rest)
    cut.rest -= bins[static_cast<size_t>(cut.bin++)];
  return cut;
}

// ---- few candidates: exact
// --------------------------------------------------------------------------------------- Rises as the probability
// falls. Below 0x7F800000, because x is finite.
uint32_t rank_key(const Candidate& c) { return std::bit_cast<uint32_t>(c.x) & 0x7FFFFFFFu; }

// Keeps the shortest prefix, by (x falling, id rising), whose amounts sum to `target` or more. Candidates come and
// stay in rising id. Finds the key of the last one kept by three histograms of 11, 11 and 9 bits of the key.
template <class Amount>
void keep_prefix(std::vector<Candidate>& candidates, int64_t target, const Amount& amount) {
  uint64_t prefix = 0;  // bits of the key found so far
  int64_t before = 0;   // amount of everything with a smaller key
  int known = 31;       // how far a key is shifted to compare it with prefix
  for (const int shift : {20, 9, 0}) {
    std::array<int64_t, 2048> bins{};
    const uint32_t bin_mask = (1u << (known - shift)) - 1;
    for (const Candidate& c : candidates)
      if (const uint32_t key = rank_key(c); key >> known == prefix) bins[key >> shift & bin_mask] += amount(c);
    uint32_t bin = 0;
    while (bin < bin_mask && before + bins[bin] < target) before += bins[bin++];
    prefix = prefix << (known - shift) | bin;
    known = shift;
  }
  std::erase_if(candidates, [&](const Candidate& c) {  // visits in order: ties go to the lower id
    const uint32_t key = rank_key(c);
    if (key != prefix) return key > prefix;
    if (before >= target) return true;
    before += amount(c);
    return false;
  });
}

int64_t one(const Candidate&) { return 1; }
int64_t mass_at(const Candidate& c) { return mass_of(c.exp_x); }

int64_t top_p_target(double top_p, int64_t total) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(top_p * static_cast<double>(total))), 1, total);
}

// Tokens of so small a mass that it rounds to 0 cannot change what top_p keeps.
constexpr float kNoMass = -28.5f;  // exp(-28.5) < 2^-41

float lowest_kept(const SamplingParams& params) {
  const auto min_p = static_cast<float>(params.min_p);
  float lowest = std::numeric_limits<float>::lowest();
  if (params.top_p < 1) lowest = kNoMass;
  if (min_p >= std::numeric_limits<float>::min()) lowest = std::max(lowest, log_normal<OneLane>(min_p));
  return lowest;
}

}  // namespace

bool has_filters(const SamplingParams& params) { return params.min_p > 0 || params.top_k > 0 || params.top_p < 1; }

void filter(std::span<const float> x, const SamplingParams& params, const VocabOps& ops, FilterScratch& scratch,
            std::vector<Candidate>& candidates) {
  const float lowest = lowest_kept(params);
  const bool by_count = params.top_k > 0, by_mass = params.top_p < 1;
  scratch.exp_x.resize(x.size());
  if (by_mass) ops.exp(x.data(), static_cast<int32_t>(x.size()), scratch.exp_x.data());
  const std::vector<float>& e = scratch.exp_x;

  Cut cut;
  if (by_count)
    cut = find_cut(
        x, lowest, [](size_t) { return int64_t{1}; }, [&](int64_t) { return int64_t{params.top_k}; });
  else if (by_mass)
    cut = find_cut(
        x, lowest, [&](size_t i) { return mass_of(e[i]); },
        [&](int64_t total) { return top_p_target(params.top_p, total); });

  // Writes always and advances where kept: no branch to mispredict.
  std::vector<int32_t>& ids = scratch.ids;
  ids.resize(x.size() + 1);
  size_t n_kept = 0;
  const float edge = std::max(lowest, cut.edge());
  for (size_t i = 0; i < x.size(); ++i) {
    ids[n_kept] = static_cast<int32_t>(i);
    n_kept += x[i] >= edge;
  }
  candidates.clear();
  std::vector<Candidate>& at_cut = scratch.at_cut;
  at_cut.clear();
  for (size_t i = 0; i < n_kept; ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    (bin_of(x[id]) < cut.bin ? candidates : at_cut).push_back({x[id], by_mass ? e[id] : 0, ids[i]});
  }
  if (by_count)
    keep_prefix(at_cut, cut.rest, one);
  else if (by_mass)
    keep_prefix(at_cut, cut.rest, mass_at);
  const auto middle = candidates.insert(candidates.end(), at_cut.begin(), at_cut.end());
  std::inplace_merge(candidates.begin(), middle, candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.id < b.id; });

  if (by_count && by_mass) {
    int64_t total = 0;
    for (const Candidate& c : candidates) total += mass_at(c);
    keep_prefix(candidates, top_p_target(params.top_p, total), mass_at);
  }
}

}  // namespace gannet::sample
