// What a model file says about one tensor, whatever the file's format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gannet::files {

constexpr int kMaxFileRank = 8;  // convolution kernels have 5; more than 8 is taken for a broken file

// Dimensions, outermost first and row-major, as safetensors writes them. GGUF's order is reversed into this one.
struct Shape {
  int32_t rank = 0;
  std::array<int64_t, kMaxFileRank> dim{};

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (const int64_t n : dims) dim[static_cast<size_t>(rank++)] = n;
  }
  int64_t operator[](int i) const { return dim[static_cast<size_t>(i)]; }
  bool operator==(const Shape& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i)
      if ((*this)[i] != other[i]) return false;
    return true;
  }
  std::optional<int64_t> elements() const;  // nothing where the product leaves int64 or a dimension is negative
  std::string text() const;                 // "[129280, 5120]"
};

enum class StorageType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  boolean,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  mxfp4,
  unsupported,  // named by the format, not read by Gannet: listed, refused on use
};

struct StorageTypeInfo {
  std::string_view name;   // as the file format spells it
  int32_t block_elements;  // consecutive elements of the last dimension that share one block
  int32_t block_bytes;     // 0 for `unsupported`
};
const StorageTypeInfo& storage_type_info(StorageType type);

struct TensorInfo {
  std::string name;
  StorageType type = StorageType::unsupported;
  std::string type_name;  // the file's word for a type Gannet does not read; empty otherwise
  Shape shape;
  std::span<const std::byte> bytes;  // inside the mapped file; empty for `unsupported`
  int32_t file = 0;                  // which file of a sharded set

  std::string_view type_text() const {
    return type_name.empty() ? storage_type_info(type).name : std::string_view(type_name);
  }
};

}  // namespace gannet::files
