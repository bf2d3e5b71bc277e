// safetensors: one file, or a sharded set with its index. Mapped, never copied; every length, offset, shape and
// count is checked against the file before use, so a hostile file gives an error that names file, tensor and
// values.
//
// Layout: u64 little-endian header length, a JSON object {name: {dtype, shape, data_offsets: [begin, end]}},
// payload. Refused: overlapping tensors, gaps in the payload, a payload that does not end with the file, repeated
// names. Source: the format description of the safetensors project.
#pragma once

#include <filesystem>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "files/tensor_info.h"

namespace gannet::files {

// The tensors one header describes, in the header's order. `file_name` is for messages, `file` is the number to put
// into TensorInfo::file. Fails with bad_file. Exposed for the fuzz target; others use SafeTensors.
Result<std::vector<TensorInfo>> parse_safetensors(std::span<const std::byte> file_bytes, std::string_view file_name,
                                                  int32_t file);

// The pairs (tensor, file) of an index, {"weight_map": {tensor: file}}. File names are plain: no folder in them.
// Exposed for the fuzz target.
Result<std::vector<std::pair<std::string, std::string>>> parse_safetensors_index(std::string_view text,
                                                                                 std::string_view name);

// Owns the mappings; immutable after open, any thread may read. TensorInfo pointers stay valid as long as this.
class SafeTensors {
 public:
  // `path`: a .safetensors file, an index (*.safetensors.index.json), or a folder that holds either. The index of a
  // sharded set must name exactly the tensors of its shards. Fails with not_found, io or bad_file.
  static Result<SafeTensors> open(const std::filesystem::path& path);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;  // null when absent
  const std::vector<MappedFile>& files() const { return files_; }
  int64_t payload_bytes() const { return payload_bytes_; }

 private:
  std::vector<MappedFile> files_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, int32_t> index_;  // keys point into tensors_
  int64_t payload_bytes_ = 0;
};

}  // namespace gannet::files
