#include "files/safetensors.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "base/json.h"
#include "files/json_scan.h"

namespace gannet::files {
namespace {

constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr int64_t kMaxIndexBytes = 256'000'000;

StorageType type_from_name(std::string_view name) {
  // Only the plain types: block types have no name in this format.
  for (int i = 0; i < static_cast<int>(StorageType::q4_0); ++i)
    if (const auto type = static_cast<StorageType>(i); storage_type_info(type).name == name) return type;
  return StorageType::unsupported;
}

// Text from a file, cut and made printable, for messages.
std::string shown(std::string_view text) {
  std::string out;
  append_json_string(out, text.substr(0, 200));
  return out;
}

class HeaderParser {
 public:
  HeaderParser(std::string_view header, std::span<const std::byte> payload, std::string_view file_name,
               int32_t file)
      : scan_(header), payload_(payload), file_name_(file_name), file_(file) {}

  Result<std::vector<TensorInfo>> run() {
    if (!scan_.take('{')) return broken();
    if (!scan_.take('}')) {
      do {
        GANNET_TRY(entry());
      } while (scan_.take(','));
      if (!scan_.take('}')) return broken();
    }
    if (!scan_.at_end()) return broken();
    GANNET_TRY(check_cover());
    return std::move(tensors_);
  }

 private:
  struct Range {
    uint64_t begin, end;
    size_t tensor;
  };

  Error bad(std::string text) const { return {Errc::bad_file, fmt::format("{}: {}", file_name_, text)}; }
  Error broken() const {
    return bad(
        fmt::format("the header is not the JSON that safetensors asks for, near header byte {}", scan_.offset()));
  }

  Status entry() {
    std::string_view name;
    if (!scan_.string(name, scratch_) || !scan_.take(':')) return broken();
    if (name == "__metadata__") return scan_.peek('{') && scan_.skip_value(8) ? ok() : Status(broken());
    TensorInfo info;
    info.name = name;
    info.file = file_;
    uint64_t begin = 0, end = 0;
    GANNET_TRY(fields(info, begin, end));
    return place(std::move(info), begin, end);
  }

  Status fields(TensorInfo& info, uint64_t& begin, uint64_t& end) {
    bool has_type = false, has_shape = false, has_offsets = false;
    if (!scan_.take('{')) return broken();
    do {
      std::string_view key, type;
      if (!scan_.string(key, scratch_) || !scan_.take(':')) return broken();
      if (key == "dtype" && !has_type) {
        has_type = true;
        if (!scan_.string(type, scratch_)) return broken();
        info.type = type_from_name(type);
        if (info.type == StorageType::unsupported) info.type_name = type.substr(0, 64);
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        GANNET_TRY(shape(info));
      } else if (key == "data_offsets" && !has_offsets) {
        has_offsets = true;
        if (!scan_.take('[') || !scan_.unsigned_integer(begin) || !scan_.take(',') ||
            !scan_.unsigned_integer(end) || !scan_.take(']'))
          return broken();
      } else {
        return bad(fmt::format("tensor {} has an unknown or repeated field {}", shown(info.name), shown(key)));
      }
    } while (scan_.take(','));
    if (!scan_.take('}')) return broken();
    if (!has_type || !has_shape || !has_offsets)
      return bad(fmt::format("tensor {} lacks its {}", shown(info.name),
                             !has_type    ? "dtype"
                             : !has_shape ? "shape"
                                          : "data_offsets"));
    return ok();
  }

  Status shape(TensorInfo& info) {
    if (!scan_.take('[')) return broken();
    if (scan_.take(']')) return ok();
    do {
      uint64_t n = 0;
      if (!scan_.unsigned_integer(n)) return broken();
      if (info.shape.rank == kMaxFileRank)
        return bad(fmt::format("tensor {} has more than {} dimensions", shown(info.name), kMaxFileRank));
      if (n > static_cast<uint64_t>(INT64_MAX))
        return bad(fmt::format("tensor {} has a dimension of {}", shown(info.name), n));
      info.shape.dim[static_cast<size_t>(info.shape.rank++)] = static_cast<int64_t>(n);
    } while (scan_.take(','));
    return scan_.take(']') ? ok() : Status(broken());
  }

  Status place(TensorInfo info, uint64_t begin, uint64_t end) {
    if (begin > end || end > payload_.size())
      return bad(fmt::format("tensor {} claims bytes {} to {} of a payload of {}", shown(info.name), begin, end,
                             payload_.size()));
    const auto elements = info.shape.elements();
    const int64_t element_bytes = storage_type_info(info.type).block_bytes;
    const uint64_t size = end - begin;
    if (!elements)
      return bad(fmt::format("tensor {} has the impossible shape {}", shown(info.name), info.shape.text()));
    if (info.type != StorageType::unsupported) {
      if (*elements > INT64_MAX / element_bytes || static_cast<uint64_t>(*elements * element_bytes) != size)
        return bad(fmt::format("tensor {} of {} {} has {} bytes", shown(info.name), info.type_text(),
                               info.shape.text(), size));
      info.bytes = payload_.subspan(begin, size);
    }
    if (size > 0) ranges_.push_back({begin, end, tensors_.size()});
    tensors_.push_back(std::move(info));
    return ok();
  }

  // Names are unique; tensors cover the payload without overlap or gap.
  Status check_cover() {
    std::unordered_set<std::string_view> names;
    names.reserve(tensors_.size());
    for (const TensorInfo& t : tensors_)
      if (!names.insert(t.name).second) return bad(fmt::format("tensor {} appears twice", shown(t.name)));
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    uint64_t at = 0;
    for (const Range& r : ranges_) {
      const std::string& name = tensors_[r.tensor].name;
      if (r.begin < at)
        return bad(fmt::format("tensor {} at byte {} overlaps one that ends at {}", shown(name), r.begin, at));
      if (r.begin > at)
        return bad(fmt::format("bytes {} to {} before tensor {} belong to no tensor", at, r.begin, shown(name)));
      at = r.end;
    }
    if (at != payload_.size())
      return bad(fmt::format("the payload has {} bytes, its tensors end at {}", payload_.size(), at));
    return ok();
  }

  JsonScan scan_;
  std::span<const std::byte> payload_;
  std::string_view file_name_;
  int32_t file_;
  std::string scratch_;
  std::vector<TensorInfo> tensors_;
  std::vector<Range> ranges_;
};

using WeightMap = std::vector<std::pair<std::string, std::string>>;  // tensor, file

// Where a path leads: one file, or an index.
struct Source {
  std::filesystem::path file;
  bool index = false;
};

Result<Source> locate(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const std::string name = path.filename().string();
    return Source{path, name.ends_with(".index.json")};
  }
  if (const auto index = path / "model.safetensors.index.json"; fs::exists(index, error))
    return Source{index, true};
  if (const auto single = path / "model.safetensors"; fs::exists(single, error)) return Source{single, false};
  std::vector<fs::path> found;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors") found.push_back(it->path());
  if (error) return Error{Errc::io, fmt::format("cannot list {}: {}", path.string(), error.message())};
  if (found.empty()) return Error{Errc::not_found, fmt::format("{} holds no .safetensors file", path.string())};
  if (found.size() > 1)
    return Error{Errc::bad_file, fmt::format("{} holds {} .safetensors files but no model.safetensors.index.json",
                                             path.string(), found.size())};
  return Source{found.front(), false};
}

}  // namespace

Result<std::vector<TensorInfo>> parse_safetensors(std::span<const std::byte> file_bytes, std::string_view file_name,
                                                  int32_t file) {
  static_assert(std::endian::native == std::endian::little);
  const auto bad = [&](std::string text) { return Error{Errc::bad_file, fmt::format("{}: {}", file_name, text)}; };
  if (file_bytes.size() < 8)
    return bad(fmt::format("{} bytes are too few for a safetensors file", file_bytes.size()));
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file_bytes.data(), 8);
  if (header_bytes > file_bytes.size() - 8)
    return bad(fmt::format("the header claims {} bytes, {} follow", header_bytes, file_bytes.size() - 8));
  if (header_bytes > static_cast<uint64_t>(kMaxHeaderBytes))
    return bad(fmt::format("a header of {} bytes is larger than the {} allowed", header_bytes, kMaxHeaderBytes));
  const std::string_view header(reinterpret_cast<const char*>(file_bytes.data()) + 8, header_bytes);
  if (!simdjson::validate_utf8(header.data(), header.size())) return bad("the header is not valid UTF-8");
  return HeaderParser(header, file_bytes.subspan(8 + header_bytes), file_name, file).run();
}

// {"metadata": ..., "weight_map": {tensor: file}}
Result<WeightMap> parse_safetensors_index(std::string_view text, std::string_view name) {
  JsonScan scan(text);
  WeightMap map;
  bool found = false;
  const auto broken = [&] {
    return Error{Errc::bad_file,
                 fmt::format("{} is not an index of safetensors files, near byte {}", name, scan.offset())};
  };
  if (!simdjson::validate_utf8(text.data(), text.size()) || !scan.take('{')) return broken();
  std::string scratch, scratch2;
  do {
    std::string_view key;
    if (!scan.string(key, scratch) || !scan.take(':')) return broken();
    if (key != "weight_map" || found) {
      if (!scan.skip_value()) return broken();
      continue;
    }
    found = true;
    if (!scan.take('{')) return broken();
    if (scan.take('}')) continue;
    do {
      std::string_view tensor, file;
      if (!scan.string(tensor, scratch) || !scan.take(':') || !scan.string(file, scratch2)) return broken();
      if (file.empty() || file.find('/') != std::string_view::npos || file.find('\0') != std::string_view::npos)
        return Error{Errc::bad_file, fmt::format("{} puts tensor {} into {}, which is no plain file name", name,
                                                 shown(tensor), shown(file))};
      map.emplace_back(tensor, file);
    } while (scan.take(','));
    if (!scan.take('}')) return broken();
  } while (scan.take(','));
  if (!found || !scan.take('}') || !scan.at_end()) return broken();
  return map;
}

Result<SafeTensors> SafeTensors::open(const std::filesystem::path& path) {
  GANNET_ASSIGN(const Source source, locate(path));
  SafeTensors set;
  WeightMap map;
  std::vector<std::filesystem::path> paths;
  std::unordered_map<std::string_view, int32_t> shard_of;  // by file name, as the index spells it
  if (source.index) {
    GANNET_ASSIGN(const std::string text, read_file(source.file, kMaxIndexBytes));
    GANNET_ASSIGN(map, parse_safetensors_index(text, source.file.string()));
    for (const auto& [tensor, file] : map)
      if (shard_of.try_emplace(file, static_cast<int32_t>(paths.size())).second)
        paths.push_back(source.file.parent_path() / file);
  } else {
    paths.push_back(source.file);
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    auto mapped = MappedFile::open(paths[i]);
    if (!mapped && source.index && mapped.error().code == Errc::not_found)
      return Error{Errc::bad_file, fmt::format("{} names the shard {}, which is missing", source.file.string(),
                                               paths[i].filename().string())};
    if (!mapped) return mapped.error();
    GANNET_ASSIGN(auto tensors, parse_safetensors(mapped->bytes(), paths[i].string(), static_cast<int32_t>(i)));
    set.files_.push_back(std::move(*mapped));
    std::move(tensors.begin(), tensors.end(), std::back_inserter(set.tensors_));
  }
  set.index_.reserve(set.tensors_.size());
  for (const TensorInfo& t : set.tensors_) {
    set.payload_bytes_ += static_cast<int64_t>(t.bytes.size());
    const auto [it, fresh] = set.index_.try_emplace(t.name, static_cast<int32_t>(&t - set.tensors_.data()));
    if (!fresh)
      return Error{
          Errc::bad_file,
          fmt::format(
              "tensor {} is in {} and in {}", shown(t.name),
              set.files_[static_cast<size_t>(t.file)].path().string(),
              set.files_[static_cast<size_t>(set.tensors_[static_cast<size_t>(it->second)].file)].path().string())};
  }
  if (source.index) {
    for (const auto& [tensor, file] : map) {
      const TensorInfo* info = set.find(tensor);
      if (info == nullptr || info->file != shard_of[file])
        return Error{Errc::bad_file, fmt::format("{} says that {} holds tensor {}, but it does not",
                                                 source.file.string(), file, shown(tensor))};
    }
    if (map.size() != set.tensors_.size())
      return Error{Errc::bad_file, fmt::format("{} lists {} tensors, its shards hold {}", source.file.string(),
                                               map.size(), set.tensors_.size())};
  }
  return set;
}

const TensorInfo* SafeTensors::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[static_cast<size_t>(it->second)];
}

}  // namespace gannet::files
