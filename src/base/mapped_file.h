// A whole file mapped read-only. Bytes are the file's; touching a page after the file shrank raises SIGBUS, so a
// model file must not be truncated while it is in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace gannet {

class MappedFile {
 public:
  // Fails with not_found or io, naming the path. An empty file maps to an empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Hints for the kernel: the range will be read soon, or will not be read again. Any thread.
  void will_need(int64_t offset, int64_t size) const;
  void dont_need(int64_t offset, int64_t size) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::filesystem::path path_;
};

// Reads a whole small file (configs, templates). Fails when it is larger than `max_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, int64_t max_bytes = int64_t{256} << 20);

// Writes `text` to a temporary file beside `path`, syncs it, and renames it over `path`: readers see the old
// content or the new one, never a part. On failure the old file stays and the temporary one is removed.
Status write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace gannet
