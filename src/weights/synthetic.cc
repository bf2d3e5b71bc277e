#include "weights/synthetic.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "base/check.h"

namespace gannet::weights {
namespace {

using files::StorageType;

// The finaliser of splitmix64 over a counter: 64 random bits for each (key, index).
inline uint64_t random_bits(uint64_t key, uint64_t index) {
  uint64_t x = key + index * 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

uint64_t hash_name(uint64_t seed, std::string_view name) {
  uint64_t h = random_bits(seed, 0);
  for (const char c : name) h = random_bits(h, static_cast<unsigned char>(c));
  return h;
}

// Root mean squares of the code distributions below, before the scale:
//   e4m3  sign, 2 random exponent bits, 3 mantissa bits: magnitudes 2^-3 .. 1.875
//   e2m1  all 16 codes
//   bf16 and f32 as e4m3, with more mantissa
constexpr double kE4m3Rms = 0.8445, kE2m1Rms = 2.926, kRealRms = 0.88;

double target_rms(const WeightSpec& spec) {
  switch (spec.fill) {
    case Fill::matrix:
      return 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(spec.in, 1)));
    case Fill::embedding:
      return 1.0;
    case Fill::norm:
      return 1.0;
    case Fill::offset:
      return 0.05;
  }
  return 1.0;
}

int nearest_exponent(double ratio) { return static_cast<int>(std::lround(std::log2(ratio))); }

// Eight bytes at a time; `word` maps 64 random bits to eight bytes of output.
template <class F>
void fill_words(std::byte* out, int64_t n_bytes, uint64_t key, F word) {
  const int64_t n_words = n_bytes / 8;
  for (int64_t i = 0; i < n_words; ++i) {
    const uint64_t w = word(random_bits(key, static_cast<uint64_t>(i)));
    std::memcpy(out + 8 * i, &w, 8);
  }
  if (const int64_t rest = n_bytes % 8; rest > 0) {
    const uint64_t w = word(random_bits(key, static_cast<uint64_t>(n_words)));
    std::memcpy(out + 8 * n_words, &w, static_cast<size_t>(rest));
  }
}

uint64_t e4m3_word(uint64_t r) {
  constexpr uint64_t sign_and_mantissa = 0x8787878787878787u, low_exponent = 0x1818181818181818u,
                     base = 0x2020202020202020u;
  return (r & (sign_and_mantissa | low_exponent)) | base;  // exponent field 4..7
}

// Scales 2^(base-127), one step up or down in a quarter of the cases each.
uint64_t e8m0_word(uint64_t r, int base) {
  uint64_t out = 0;
  for (int i = 0; i < 8; ++i) {
    const auto two_bits = static_cast<int>(r >> (8 * i) & 3);
    out |= static_cast<uint64_t>(base + (two_bits == 0 ? -1 : two_bits == 1 ? 1 : 0)) << (8 * i);
  }
  return out;
}

uint64_t bf16_word(uint64_t r, const WeightSpec& spec) {
  uint64_t out = 0;
  const int exponent = 127 + nearest_exponent(target_rms(spec) / kRealRms);
  for (int i = 0; i < 4; ++i) {
    const uint64_t bits = r >> (16 * i) & 0xFFFFu;
    const uint64_t value = spec.fill == Fill::norm
                               ? 0x3F80u - 32 + (bits & 63)  // 0.875 .. 1.25
                               : (bits & 0x8000u) |
                                     static_cast<uint64_t>(exponent - static_cast<int>(bits >> 7 & 3)) << 7 |
                                     (bits & 0x7Fu);
    out |= value << (16 * i);
  }
  return out;
}

uint64_t f32_word(uint64_t r, const WeightSpec& spec) {
  uint64_t out = 0;
  const int exponent = 127 + nearest_exponent(target_rms(spec) / kRealRms);
  for (int i = 0; i < 2; ++i) {
    const uint64_t bits = r >> (32 * i) & 0xFFFFFFFFu;
    const uint64_t value = spec.fill == Fill::norm
                               ? 0x3F800000u - 0x200000u + (bits & 0x3FFFFFu)
                               : (bits & 0x80000000u) |
                                     static_cast<uint64_t>(exponent - static_cast<int>(bits >> 23 & 3)) << 23 |
                                     (bits & 0x7FFFFFu);
    out |= value << (32 * i);
  }
  return out;
}

void fill(std::byte* out, int64_t n_bytes, uint64_t key, const WeightSpec& spec, bool is_scale) {
  if (is_scale) {
    const double code_rms = spec.stored == Stored::mxfp4_1x32 ? kE2m1Rms : kE4m3Rms;
    const int base = 127 + nearest_exponent(target_rms(spec) / code_rms);
    fill_words(out, n_bytes, key, [base](uint64_t r) { return e8m0_word(r, base); });
    return;
  }
  switch (spec.stored) {
    case Stored::fp8_32x32:
    case Stored::fp8_1x32:
      fill_words(out, n_bytes, key, e4m3_word);
      break;
    case Stored::mxfp4_1x32:
      fill_words(out, n_bytes, key, [](uint64_t r) { return r; });
      break;
    case Stored::bf16:
      fill_words(out, n_bytes, key, [&](uint64_t r) { return bf16_word(r, spec); });
      break;
    case Stored::f32:
      fill_words(out, n_bytes, key, [&](uint64_t r) { return f32_word(r, spec); });
      break;
  }
}

files::TensorInfo weight_info(const WeightSpec& spec) {
  files::TensorInfo info;
  info.name = spec.name;
  switch (spec.stored) {
    case Stored::bf16:
      info.type = StorageType::bf16;
      break;
    case Stored::f32:
      info.type = StorageType::f32;
      break;
    case Stored::mxfp4_1x32:
      info.type = StorageType::i8;
      break;
    default:
      info.type = StorageType::f8_e4m3;
  }
  const int64_t in = spec.stored == Stored::mxfp4_1x32 ? spec.in / 2 : spec.in;
  info.shape = spec.rank == 1 ? files::Shape{in} : files::Shape{spec.out, in};
  return info;
}

files::TensorInfo scale_info(const WeightSpec& spec) {
  files::TensorInfo info;
  std::string_view stem = spec.name;
  if (stem.ends_with(".weight")) stem.remove_suffix(7);
  info.name = std::string(stem) + ".scale";
  info.type = StorageType::f8_e8m0;
  info.shape = {spec.stored == Stored::fp8_32x32 ? (spec.out + 31) / 32 : spec.out, (spec.in + 31) / 32};
  return info;
}

std::byte* map_or_die(int64_t bytes, int fd, std::byte* at) {
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* data = ::mmap(at, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      flags | (at != nullptr ? MAP_FIXED : 0), fd, 0);
  GANNET_CHECK(data != MAP_FAILED, "no memory for {} bytes of synthetic weights", bytes);
  return static_cast<std::byte*>(data);
}

}  // namespace

Synthetic::Synthetic(std::vector<WeightSpec> specs, uint64_t seed, int64_t max_unique_bytes, int64_t max_bytes)
    : specs_(std::move(specs)), seed_(seed) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  max_unique_bytes_ = std::max<int64_t>((max_unique_bytes + page - 1) / page * page, page);
  for (size_t i = 0; i < specs_.size(); ++i)
    for (const bool is_scale : {false, true}) {
      if (is_scale && !specs_[i].has_scale()) continue;
      infos_.push_back(is_scale ? scale_info(specs_[i]) : weight_info(specs_[i]));
      Tensor& t = tensors_.emplace_back();
      t.spec = static_cast<int32_t>(i);
      t.is_scale = is_scale;
      t.owner = static_cast<int32_t>(tensors_.size() - 1);
      t.n_bytes = *infos_.back().shape.elements() * storage_type_info(infos_.back().type).block_bytes;
      total_bytes_ += t.n_bytes;
    }
  if (max_bytes > 0) share(max_bytes);
}

// Tensors of one kind take turns in the memory of the first K of them, with the largest K that keeps all below the
// limit.
void Synthetic::share(int64_t max_bytes) {
  std::map<std::tuple<int64_t, int64_t, Stored, Fill, bool>, std::vector<int32_t>> kinds;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const WeightSpec& spec = specs_[static_cast<size_t>(tensors_[i].spec)];
    kinds[{spec.out, spec.in, spec.stored, spec.fill, tensors_[i].is_scale}].push_back(static_cast<int32_t>(i));
  }
  const auto bytes_with = [&](size_t k) {
    int64_t bytes = 0;
    for (const auto& [kind, members] : kinds)
      bytes += static_cast<int64_t>(std::min(k, members.size())) *
               std::min(tensors_[static_cast<size_t>(members.front())].n_bytes, max_unique_bytes_);
    return bytes;
  };
  if (bytes_with(tensors_.size()) <= max_bytes) return;
  size_t low = 1, high = tensors_.size();  // low always serves, unless one of each kind is too much already
  while (low < high) {
    const size_t middle = (low + high + 1) / 2;
    if (bytes_with(middle) <= max_bytes)
      low = middle;
    else
      high = middle - 1;
  }
  for (const auto& [kind, members] : kinds)
    for (size_t i = 0; i < members.size(); ++i) tensors_[static_cast<size_t>(members[i])].owner = members[i % low];
}

Synthetic::~Synthetic() {
  for (Tensor& t : tensors_)
    if (std::byte* data = t.data.load(); data != nullptr) ::munmap(data, static_cast<size_t>(t.n_bytes));
}

std::byte* Synthetic::make(Tensor& tensor, const files::TensorInfo& info) {
  const WeightSpec& spec = specs_[static_cast<size_t>(tensor.spec)];
  const uint64_t key = hash_name(seed_, info.name);
  if (tensor.n_bytes <= max_unique_bytes_) {
    std::byte* data = map_or_die(tensor.n_bytes, -1, nullptr);
    fill(data, tensor.n_bytes, key, spec, tensor.is_scale);
    return data;
  }
  // One region of memory behind every stretch of the tensor.
  const int fd = ::memfd_create("gannet-synthetic", MFD_CLOEXEC);
  GANNET_CHECK(fd >= 0 && ::ftruncate(fd, max_unique_bytes_) == 0, "no memory file of {} bytes", max_unique_bytes_);
  std::byte* data = map_or_die(tensor.n_bytes, -1, nullptr);
  for (int64_t at = 0; at < tensor.n_bytes; at += max_unique_bytes_)
    map_or_die(std::min(max_unique_bytes_, tensor.n_bytes - at), fd, data + at);
  ::close(fd);
  fill(data, max_unique_bytes_, key, spec, tensor.is_scale);
  return data;
}

std::span<const std::byte> Synthetic::bytes(const files::TensorInfo& info) {
  const auto i = static_cast<size_t>(&info - infos_.data());
  GANNET_CHECK(i < tensors_.size(), "not a tensor of this set");
  const auto owner = static_cast<size_t>(tensors_[i].owner);
  Tensor& t = tensors_[owner];
  std::byte* data = t.data.load(std::memory_order_acquire);
  if (data == nullptr) {
    const std::lock_guard lock(mutex_);
    data = t.data.load(std::memory_order_relaxed);
    if (data == nullptr) {
      data = make(t, infos_[owner]);
      t.data.store(data, std::memory_order_release);
    }
  }
  return {data, static_cast<size_t>(t.n_bytes)};
}

}  // namespace gannet::weights
