#include "files/tensor_info.h"

#include <limits>

namespace gannet::files {
namespace {

constexpr StorageTypeInfo kTypes[] = {
    {"F64", 1, 8},      {"F32", 1, 4},     {"F16", 1, 2},         {"BF16", 1, 2},     {"F8_E4M3", 1, 1},
    {"F8_E5M2", 1, 1},  {"F8_E8M0", 1, 1}, {"BOOL", 1, 1},        {"I8", 1, 1},       {"U8", 1, 1},
    {"I16", 1, 2},      {"U16", 1, 2},     {"I32", 1, 4},         {"U32", 1, 4},      {"I64", 1, 8},
    {"U64", 1, 8},      {"Q4_0", 32, 18},  {"Q4_1", 32, 20},      {"Q5_0", 32, 22},   {"Q5_1", 32, 24},
    {"Q8_0", 32, 34},   {"Q2_K", 256, 84}, {"Q3_K", 256, 110},    {"Q4_K", 256, 144}, {"Q5_K", 256, 176},
    {"Q6_K", 256, 210}, {"MXFP4", 32, 17}, {"unsupported", 1, 0},
};
static_assert(std::size(kTypes) == static_cast<size_t>(StorageType::unsupported) + 1);

}  // namespace

const StorageTypeInfo& storage_type_info(StorageType type) { return kTypes[static_cast<size_t>(type)]; }

std::optional<int64_t> Shape::elements() const {
  int64_t n = 1;
  bool overflow = false, zero = false;
  for (int i = 0; i < rank; ++i) {
    const int64_t d = (*this)[i];
    if (d < 0) return std::nullopt;
    zero |= d == 0;
    if (d != 0 && n > std::numeric_limits<int64_t>::max() / d)
      overflow = true;
    else
      n *= d;
  }
  if (zero) return 0;
  if (overflow) return std::nullopt;
  return n;
}

std::string Shape::text() const {
  std::string out = "[";
  for (int i = 0; i < rank; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string((*this)[i]);
  }
  return out + "]";
}

}  // namespace gannet::files
