#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gannet {
namespace {

Error os_error(std::string_view doing, const std::filesystem::path& path) {
  const Errc code = errno == ENOENT ? Errc::not_found : Errc::io;
  return {code, fmt::format("cannot {} {}: {}", doing, path.string(), std::strerror(errno))};
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

void advise(const std::byte* data, size_t size, int64_t offset, int64_t length, int advice) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t begin = std::clamp<int64_t>(offset, 0, static_cast<int64_t>(size)) / page * page;
  const int64_t end = std::clamp<int64_t>(offset + length, begin, static_cast<int64_t>(size));
  if (end > begin) ::madvise(const_cast<std::byte*>(data) + begin, static_cast<size_t>(end - begin), advice);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return os_error("open", path);
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return os_error("read", path);
  if (!S_ISREG(info.st_mode)) return Error{Errc::io, fmt::format("{} is not a regular file", path.string())};
  MappedFile mapped;
  mapped.path_ = path;
  mapped.size_ = static_cast<size_t>(info.st_size);
  if (mapped.size_ > 0) {
    void* data = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data == MAP_FAILED) {
      mapped.size_ = 0;
      return os_error("map", path);
    }
    mapped.data_ = static_cast<const std::byte*>(data);
  }
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::will_need(int64_t offset, int64_t size) const {
  advise(data_, size_, offset, size, MADV_WILLNEED);
}
void MappedFile::dont_need(int64_t offset, int64_t size) const {
  advise(data_, size_, offset, size, MADV_DONTNEED);
}

Result<std::string> read_file(const std::filesystem::path& path, int64_t max_bytes) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return os_error("open", path);
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return os_error("read", path);
  if (S_ISDIR(info.st_mode)) return Error{Errc::io, fmt::format("{} is a folder, not a file", path.string())};
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(file.fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("read", path);
    if (n == 0) return text;
    if (static_cast<int64_t>(text.size()) + n > max_bytes)
      return Error{Errc::bad_file,
                   fmt::format("{} has more than the {} bytes allowed here", path.string(), max_bytes)};
    text.append(buffer, static_cast<size_t>(n));
  }
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  std::string temporary = path.string() + ".XXXXXX";
  const Descriptor file{::mkstemp(temporary.data())};
  if (file.fd < 0) return os_error("create a file beside", path);
  const auto fail = [&](std::string_view doing) -> Status {
    const Error error = os_error(doing, path);
    ::unlink(temporary.c_str());
    return error;
  };
  if (::fchmod(file.fd, 0644) != 0) return fail("set the mode of");
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file.fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail("write");
    done += static_cast<size_t>(n);
  }
  if (::fsync(file.fd) != 0) return fail("sync");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail("replace");
  return ok();
}

}  // namespace gannet
