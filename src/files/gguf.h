// GGUF, versions 2 and 3, little-endian: typed metadata and tensors, mapped, never copied. Every length, offset,
// count and alignment is checked before use; a hostile file gives an error that names file, key or tensor, and
// values.
//
// Tensors of a ggml type that Gannet does not read are listed as StorageType::unsupported with the type's name.
// Source: docs/gguf.md of the ggml project.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "files/tensor_info.h"

namespace gannet::files {

enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
std::string_view gguf_type_name(GgufType type);

// One metadata value. Scalars and arrays are decoded on demand from the mapped bytes, which were checked at open.
class GgufValue {
 public:
  GgufType type() const { return type_; }                  // `array` for arrays
  GgufType element_type() const { return element_type_; }  // of an array
  int64_t size() const { return size_; }                   // elements of an array, 1 for a scalar

  // The value, or nothing where the kind or the range does not fit.
  std::optional<bool> as_bool() const;
  std::optional<int64_t> as_int() const;              // any integer type
  std::optional<double> as_double() const;            // any number type
  std::optional<std::string_view> as_string() const;  // points into the file

  // Arrays, or nothing where the element type does not fit. Strings point into the file.
  std::optional<std::vector<std::string_view>> as_strings() const;
  std::optional<std::vector<int64_t>> as_ints() const;  // any integer type, or bool
  std::optional<std::vector<float>> as_floats() const;  // f32 or f64

 private:
  friend class GgufParser;
  GgufType type_ = GgufType::u8;
  GgufType element_type_ = GgufType::u8;
  int64_t size_ = 1;
  std::span<const std::byte> data_;  // of the value, from its first element
};

// The metadata and tensors of a GGUF file. Immutable after open, any thread may read.
class Gguf {
 public:
  static Result<Gguf> open(const std::filesystem::path& path);  // not_found, io, bad_file
  // As open, over bytes that outlive the result. `file_name` is for messages.
  static Result<Gguf> parse(std::span<const std::byte> file_bytes, std::string_view file_name);

  uint32_t version() const { return version_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;                                           // null when absent
  const GgufValue* value(std::string_view key) const;                                            // null when absent
  const std::vector<std::pair<std::string_view, GgufValue>>& values() const { return values_; }  // in file order

  // Typed access that fails with bad_file, naming file, key and type, when absent or of another kind.
  Result<int64_t> get_int(std::string_view key) const;
  Result<double> get_double(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;

  const MappedFile& file() const { return file_; }
  const std::string& name() const { return name_; }
  int64_t payload_bytes() const { return payload_bytes_; }

 private:
  friend class GgufParser;
  MappedFile file_;
  std::string name_;
  uint32_t version_ = 0;
  int64_t payload_bytes_ = 0;
  std::vector<std::pair<std::string_view, GgufValue>> values_;
  std::unordered_map<std::string_view, int32_t> value_index_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, int32_t> tensor_index_;
};

}  // namespace gannet::files
