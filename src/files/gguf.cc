#include "files/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/json.h"

namespace gannet::files {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;  // of the format description
constexpr uint64_t kMaxNameBytes = 4096;  // the format says 64, files in use exceed it
constexpr int kMaxGgufRank = 4;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 30;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string shown(std::string_view text) {
  std::string out;
  append_json_string(out, text.substr(0, 200));
  return out;
}

// Bytes of one value, 0 for strings and arrays.
uint64_t fixed_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    default:
      return 0;
  }
}

struct GgmlType {
  uint32_t id;
  StorageType type;
  std::string_view name;  // of a type Gannet does not read
};
constexpr GgmlType kGgmlTypes[] = {
    {0, StorageType::f32, ""},
    {1, StorageType::f16, ""},
    {2, StorageType::q4_0, ""},
    {3, StorageType::q4_1, ""},
    {6, StorageType::q5_0, ""},
    {7, StorageType::q5_1, ""},
    {8, StorageType::q8_0, ""},
    {10, StorageType::q2_k, ""},
    {11, StorageType::q3_k, ""},
    {12, StorageType::q4_k, ""},
    {13, StorageType::q5_k, ""},
    {14, StorageType::q6_k, ""},
    {24, StorageType::i8, ""},
    {25, StorageType::i16, ""},
    {26, StorageType::i32, ""},
    {27, StorageType::i64, ""},
    {28, StorageType::f64, ""},
    {30, StorageType::bf16, ""},
    {39, StorageType::mxfp4, ""},
    {9, StorageType::unsupported, "Q8_1"},
    {15, StorageType::unsupported, "Q8_K"},
    {16, StorageType::unsupported, "IQ2_XXS"},
    {17, StorageType::unsupported, "IQ2_XS"},
    {18, StorageType::unsupported, "IQ3_XXS"},
    {19, StorageType::unsupported, "IQ1_S"},
    {20, StorageType::unsupported, "IQ4_NL"},
    {21, StorageType::unsupported, "IQ3_S"},
    {22, StorageType::unsupported, "IQ2_S"},
    {23, StorageType::unsupported, "IQ4_XS"},
    {29, StorageType::unsupported, "IQ1_M"},
    {34, StorageType::unsupported, "TQ1_0"},
    {35, StorageType::unsupported, "TQ2_0"},
    {40, StorageType::unsupported, "NVFP4"},
};

// One integer element, or nothing for other types and for values beyond int64.
std::optional<int64_t> integer_at(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::u8:
      return load<uint8_t>(at);
    case GgufType::i8:
      return load<int8_t>(at);
    case GgufType::u16:
      return load<uint16_t>(at);
    case GgufType::i16:
      return load<int16_t>(at);
    case GgufType::u32:
      return load<uint32_t>(at);
    case GgufType::i32:
      return load<int32_t>(at);
    case GgufType::i64:
      return load<int64_t>(at);
    case GgufType::u64:
      if (const auto value = load<uint64_t>(at); value <= static_cast<uint64_t>(INT64_MAX))
        return static_cast<int64_t>(value);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  constexpr std::string_view names[] = {"uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
                                        "bool",  "string", "array",  "uint64", "int64",  "float64"};
  return static_cast<size_t>(type) < std::size(names) ? names[static_cast<size_t>(type)] : "unknown";
}

std::optional<bool> GgufValue::as_bool() const {
  if (type_ != GgufType::boolean) return std::nullopt;
  return data_[0] != std::byte{0};
}

std::optional<int64_t> GgufValue::as_int() const { return integer_at(type_, data_.data()); }

std::optional<double> GgufValue::as_double() const {
  if (type_ == GgufType::f32) return load<float>(data_.data());
  if (type_ == GgufType::f64) return load<double>(data_.data());
  if (const auto value = as_int()) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<std::string_view> GgufValue::as_string() const {
  if (type_ != GgufType::string) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(data_.data()), data_.size());
}

std::optional<std::vector<std::string_view>> GgufValue::as_strings() const {
  if (type_ != GgufType::array || element_type_ != GgufType::string) return std::nullopt;
  std::vector<std::string_view> out;
  out.reserve(static_cast<size_t>(size_));
  size_t at = 0;
  for (int64_t i = 0; i < size_; ++i) {
    GANNET_CHECK(data_.size() - at >= 8, "string {} was not checked", i);
    const auto n = load<uint64_t>(data_.data() + at);
    GANNET_CHECK(n <= data_.size() - at - 8, "string {} was not checked", i);
    out.emplace_back(reinterpret_cast<const char*>(data_.data()) + at + 8, n);
    at += 8 + n;
  }
  return out;
}

std::optional<std::vector<int64_t>> GgufValue::as_ints() const {
  if (type_ != GgufType::array) return std::nullopt;
  const uint64_t step = fixed_bytes(element_type_);
  if (step == 0 || element_type_ == GgufType::f32 || element_type_ == GgufType::f64) return std::nullopt;
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(size_));
  for (size_t i = 0; i < static_cast<size_t>(size_); ++i) {
    const std::byte* at = data_.data() + i * step;
    const auto value = element_type_ == GgufType::boolean ? std::optional<int64_t>(*at != std::byte{0})
                                                          : integer_at(element_type_, at);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

std::optional<std::vector<float>> GgufValue::as_floats() const {
  if (type_ != GgufType::array || (element_type_ != GgufType::f32 && element_type_ != GgufType::f64))
    return std::nullopt;
  std::vector<float> out;
  out.reserve(static_cast<size_t>(size_));
  for (size_t i = 0; i < static_cast<size_t>(size_); ++i)
    out.push_back(element_type_ == GgufType::f32 ? load<float>(data_.data() + 4 * i)
                                                 : static_cast<float>(load<double>(data_.data() + 8 * i)));
  return out;
}

// Reads the file front to back. Each method leaves with the first thing that does not fit.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, Gguf& out) : bytes_(bytes), out_(out) {}

  Status run() {
    uint64_t n_tensors = 0, n_values = 0;
    GANNET_TRY(header(n_tensors, n_values));
    for (uint64_t i = 0; i < n_values; ++i) GANNET_TRY(metadata());
    GANNET_TRY(alignment());
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < n_tensors; ++i) GANNET_TRY(tensor(offsets));
    return place(offsets);
  }

 private:
  Error bad(std::string text) const { return {Errc::bad_file, fmt::format("{}: {}", out_.name_, text)}; }
  size_t left() const { return bytes_.size() - at_; }

  template <class T>
  bool read(T& value) {
    if (left() < sizeof(T)) return false;
    value = load<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return true;
  }
  bool read_text(std::string_view& text, uint64_t limit) {
    uint64_t n = 0;
    if (!read(n) || n > left() || n > limit) return false;
    text = {reinterpret_cast<const char*>(bytes_.data()) + at_, n};
    at_ += n;
    return true;
  }

  Status header(uint64_t& n_tensors, uint64_t& n_values) {
    if (bytes_.size() < 4 || std::memcmp(bytes_.data(), "GGUF", 4) != 0)
      return bad("the file does not begin with 'GGUF'");
    at_ = 4;
    if (!read(out_.version_) || !read(n_tensors) || !read(n_values)) return bad("the file ends inside its header");
    if (out_.version_ > 0xFFFF)
      return Error{Errc::unsupported, fmt::format("{}: big-endian GGUF is not supported", out_.name_)};
    if (out_.version_ != 2 && out_.version_ != 3)
      return Error{Errc::unsupported,
                   fmt::format("{}: GGUF version {} is not supported (2 and 3 are)", out_.name_, out_.version_)};
    // The smallest entries have 8 + 4 + 1 and 8 + 4 + 8 + 4 + 8 bytes.
    if (n_values > left() / 13 || n_tensors > left() / 32)
      return bad(fmt::format("{} metadata entries and {} tensors cannot fit into {} bytes", n_values, n_tensors,
                             bytes_.size()));
    out_.values_.reserve(std::min<uint64_t>(n_values, 4096));  // a claim, not yet seen: no large reserve
    out_.tensors_.reserve(std::min<uint64_t>(n_tensors, 4096));
    return ok();
  }

  Status metadata() {
    std::string_view key;
    uint32_t type = 0;
    if (!read_text(key, kMaxKeyBytes) || !read(type))
      return bad(
          fmt::format("metadata entry {} at byte {} is cut off or its key is too long", out_.values_.size(), at_));
    GgufValue value;
    if (type > static_cast<uint32_t>(GgufType::f64))
      return bad(fmt::format("metadata {} has the unknown type {}", shown(key), type));
    value.type_ = static_cast<GgufType>(type);
    GANNET_TRY(payload(key, value));
    if (!out_.value_index_.try_emplace(key, static_cast<int32_t>(out_.values_.size())).second)
      return bad(fmt::format("metadata {} appears twice", shown(key)));
    out_.values_.emplace_back(key, value);
    return ok();
  }

  Status payload(std::string_view key, GgufValue& value) {
    const auto cut = [&] {
      return bad(fmt::format("the value of metadata {} is cut off at byte {}", shown(key), at_));
    };
    if (value.type_ == GgufType::string) {
      std::string_view text;
      if (!read_text(text, left())) return cut();
      value.data_ = std::as_bytes(std::span(text));
      return ok();
    }
    if (value.type_ == GgufType::array) return array(key, value);
    const uint64_t n = fixed_bytes(value.type_);
    if (left() < n) return cut();
    value.data_ = bytes_.subspan(at_, n);
    at_ += n;
    if (value.type_ == GgufType::boolean && value.data_[0] > std::byte{1})
      return bad(fmt::format("metadata {} is a bool of value {}", shown(key), static_cast<int>(value.data_[0])));
    return ok();
  }

  Status array(std::string_view key, GgufValue& value) {
    uint32_t type = 0;
    uint64_t n = 0;
    if (!read(type) || !read(n)) return bad(fmt::format("the array of metadata {} is cut off", shown(key)));
    if (type > static_cast<uint32_t>(GgufType::f64) || type == static_cast<uint32_t>(GgufType::array))
      return bad(fmt::format("metadata {} is an array of type {}, which is not supported", shown(key), type));
    value.element_type_ = static_cast<GgufType>(type);
    const uint64_t step = fixed_bytes(value.element_type_);
    if (n > left() / (step == 0 ? 8 : step))
      return bad(fmt::format("metadata {} claims {} elements, {} bytes are left", shown(key), n, left()));
    value.size_ = static_cast<int64_t>(n);
    const size_t begin = at_;
    if (step > 0) {
      at_ += n * step;
    } else {
      std::string_view text;
      for (uint64_t i = 0; i < n; ++i)
        if (!read_text(text, left())) return bad(fmt::format("string {} of metadata {} is cut off", i, shown(key)));
    }
    value.data_ = bytes_.subspan(begin, at_ - begin);
    return ok();
  }

  Status alignment() {
    const GgufValue* value = out_.value("general.alignment");
    if (value != nullptr) {
      const auto n = value->as_int();
      if (!n || *n <= 0 || static_cast<uint64_t>(*n) > kMaxAlignment ||
          !std::has_single_bit(static_cast<uint64_t>(*n)))
        return bad("general.alignment is no power of two that makes sense");
      alignment_ = static_cast<uint64_t>(*n);
    }
    if (const GgufValue* split = out_.value("split.count"); split != nullptr && split->as_int().value_or(0) > 1)
      return Error{Errc::unsupported, fmt::format("{} is one of split.count = {} files; join them first",
                                                  out_.name_, *split->as_int())};
    return ok();
  }

  Status tensor(std::vector<uint64_t>& offsets) {
    std::string_view name;
    TensorInfo info;
    uint32_t rank = 0, type = 0;
    uint64_t offset = 0;
    if (!read_text(name, kMaxNameBytes) || !read(rank))
      return bad(fmt::format("the description of tensor {} at byte {} is cut off or its name is too long",
                             out_.tensors_.size(), at_));
    if (rank > kMaxGgufRank)
      return bad(
          fmt::format("tensor {} has {} dimensions, at most {} are possible", shown(name), rank, kMaxGgufRank));
    info.name = name;
    info.shape.rank = static_cast<int32_t>(rank);
    for (uint32_t i = 0; i < rank; ++i) {
      uint64_t n = 0;
      if (!read(n)) return bad(fmt::format("the description of tensor {} is cut off", shown(name)));
      if (n > static_cast<uint64_t>(INT64_MAX))
        return bad(fmt::format("tensor {} has a dimension of {}", shown(name), n));
      info.shape.dim[rank - 1 - i] = static_cast<int64_t>(n);  // the file has the innermost first
    }
    if (!read(type) || !read(offset))
      return bad(fmt::format("the description of tensor {} is cut off", shown(name)));
    const auto* known =
        std::find_if(std::begin(kGgmlTypes), std::end(kGgmlTypes), [&](const GgmlType& t) { return t.id == type; });
    if (known != std::end(kGgmlTypes)) {
      info.type = known->type;
      info.type_name = known->name;
    } else {
      info.type_name = fmt::format("ggml type {}", type);
    }
    offsets.push_back(offset);
    out_.tensors_.push_back(std::move(info));
    return ok();
  }

  // Sizes from shapes, then every tensor inside the payload, aligned, and clear of all others.
  Status place(const std::vector<uint64_t>& offsets) {
    const uint64_t padding = (alignment_ - at_ % alignment_) % alignment_;
    const uint64_t begin = at_ + padding;
    const std::span<const std::byte> payload =
        begin <= bytes_.size() ? bytes_.subspan(begin) : std::span<const std::byte>();
    struct Range {
      uint64_t begin, end;
      size_t tensor;
    };
    std::vector<Range> ranges;
    for (size_t i = 0; i < offsets.size(); ++i) {
      TensorInfo& t = out_.tensors_[i];
      if (!out_.tensor_index_.try_emplace(t.name, static_cast<int32_t>(i)).second)
        return bad(fmt::format("tensor {} appears twice", shown(t.name)));
      const auto elements = t.shape.elements();
      if (!elements)
        return bad(fmt::format("tensor {} has the impossible shape {}", shown(t.name), t.shape.text()));
      if (offsets[i] % alignment_ != 0)
        return bad(
            fmt::format("tensor {} at byte {} breaks the alignment of {}", shown(t.name), offsets[i], alignment_));
      if (t.type == StorageType::unsupported) continue;  // its size is unknown; it is refused on use
      const StorageTypeInfo& type = storage_type_info(t.type);
      const int64_t columns = t.shape.rank > 0 ? t.shape[t.shape.rank - 1] : 1;
      if (columns % type.block_elements != 0)
        return bad(fmt::format("tensor {} of {} {} does not divide into blocks of {}", shown(t.name), type.name,
                               t.shape.text(), type.block_elements));
      const int64_t blocks = *elements / type.block_elements;
      const uint64_t size =
          blocks > INT64_MAX / type.block_bytes ? UINT64_MAX : static_cast<uint64_t>(blocks * type.block_bytes);
      if (offsets[i] > payload.size() || size > payload.size() - offsets[i])
        return bad(fmt::format("tensor {} of {} {} at byte {} does not fit into a payload of {}", shown(t.name),
                               type.name, t.shape.text(), offsets[i], payload.size()));
      t.bytes = payload.subspan(offsets[i], size);
      out_.payload_bytes_ += static_cast<int64_t>(size);
      if (size > 0) ranges.push_back({offsets[i], offsets[i] + size, i});
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < ranges.size(); ++i)
      if (ranges[i].begin < ranges[i - 1].end)
        return bad(fmt::format("tensors {} and {} overlap", shown(out_.tensors_[ranges[i - 1].tensor].name),
                               shown(out_.tensors_[ranges[i].tensor].name)));
    return ok();
  }

  std::span<const std::byte> bytes_;
  Gguf& out_;
  size_t at_ = 0;
  uint64_t alignment_ = 32;
};

Result<Gguf> Gguf::parse(std::span<const std::byte> file_bytes, std::string_view file_name) {
  Gguf gguf;
  gguf.name_ = file_name;
  GANNET_TRY(GgufParser(file_bytes, gguf).run());
  return gguf;
}

Result<Gguf> Gguf::open(const std::filesystem::path& path) {
  GANNET_ASSIGN(MappedFile file, MappedFile::open(path));
  GANNET_ASSIGN(Gguf gguf, parse(file.bytes(), path.string()));
  gguf.file_ = std::move(file);
  return gguf;
}

const TensorInfo* Gguf::find(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[static_cast<size_t>(it->second)];
}

const GgufValue* Gguf::value(std::string_view key) const {
  const auto it = value_index_.find(key);
  return it == value_index_.end() ? nullptr : &values_[static_cast<size_t>(it->second)].second;
}

namespace {

Error wrong_kind(const Gguf& gguf, std::string_view key, std::string_view kind) {
  const GgufValue* value = gguf.value(key);
  if (value == nullptr) return {Errc::bad_file, fmt::format("{} lacks the metadata {}", gguf.name(), key)};
  return {Errc::bad_file, fmt::format("{}: metadata {} is {}, {} is expected", gguf.name(), key,
                                      gguf_type_name(value->type()), kind)};
}

}  // namespace

Result<int64_t> Gguf::get_int(std::string_view key) const {
  const GgufValue* v = value(key);
  if (const auto n = v != nullptr ? v->as_int() : std::nullopt) return *n;
  return wrong_kind(*this, key, "an integer");
}

Result<double> Gguf::get_double(std::string_view key) const {
  const GgufValue* v = value(key);
  if (const auto x = v != nullptr ? v->as_double() : std::nullopt) return *x;
  return wrong_kind(*this, key, "a number");
}

Result<std::string_view> Gguf::get_string(std::string_view key) const {
  const GgufValue* v = value(key);
  if (const auto text = v != nullptr ? v->as_string() : std::nullopt) return *text;
  return wrong_kind(*this, key, "a string");
}

}  // namespace gannet::files
