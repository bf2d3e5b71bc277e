// Writers of small model files for tests: exact by default, broken where a test asks for it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace gannet::test {

// A folder of its own, removed at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "gannet-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "cannot create " << name;
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  void write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A safetensors file of this header text and payload.
inline std::string safetensors(std::string_view header, std::string_view payload) {
  std::string out = raw(static_cast<uint64_t>(header.size()));
  out += header;
  out += payload;
  return out;
}

// Adds tensors one after the other.
class SafetensorsWriter {
 public:
  void add(std::string_view name, std::string_view dtype, const std::vector<int64_t>& shape,
           std::string_view bytes) {
    header_ += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                           header_.empty() ? "" : ",", name, dtype, fmt::join(shape, ","), payload_.size(),
                           payload_.size() + bytes.size());
    payload_ += bytes;
  }
  // Blanks make the payload begin at a multiple of 8, as writers in use do, or `shift` bytes after one.
  std::string bytes(size_t shift = 0) const {
    std::string header = fmt::format("{{{}}}", header_);
    header.resize((header.size() + 7) / 8 * 8 + shift, ' ');
    return safetensors(header, payload_);
  }

 private:
  std::string header_, payload_;
};

class GgufWriter {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the payload; set "general.alignment" as well when it is another
  int64_t extra_values = 0, extra_tensors = 0;  // lies in the counts

  static std::string text(std::string_view s) { return raw(static_cast<uint64_t>(s.size())) + std::string(s); }

  void value(std::string_view key, uint32_t type, std::string_view bytes) {
    values_ += text(key) + raw(type) + std::string(bytes);
    ++n_values_;
  }
  void u32(std::string_view key, uint32_t x) { value(key, 4, raw(x)); }
  void f32(std::string_view key, float x) { value(key, 6, raw(x)); }
  void boolean(std::string_view key, bool x) { value(key, 7, raw(static_cast<uint8_t>(x))); }
  void string(std::string_view key, std::string_view x) { value(key, 8, text(x)); }
  void strings(std::string_view key, const std::vector<std::string>& list) {
    std::string bytes = raw(uint32_t{8}) + raw(static_cast<uint64_t>(list.size()));
    for (const std::string& s : list) bytes += text(s);
    value(key, 9, bytes);
  }
  template <class T>
  void array(std::string_view key, uint32_t type, const std::vector<T>& list) {
    std::string bytes = raw(type) + raw(static_cast<uint64_t>(list.size()));
    for (const T& x : list) bytes += raw(x);
    value(key, 9, bytes);
  }

  // `dims` as the file has them, innermost first. `offset` < 0: after the tensors so far.
  void tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, std::string_view bytes,
              int64_t offset = -1) {
    const uint64_t at = offset >= 0 ? static_cast<uint64_t>(offset) : payload_.size();
    infos_ += text(name) + raw(static_cast<uint32_t>(dims.size()));
    for (const uint64_t n : dims) infos_ += raw(n);
    infos_ += raw(type) + raw(at);
    payload_ += bytes;
    payload_.resize((payload_.size() + alignment - 1) / alignment * alignment);
    ++n_tensors_;
  }

  std::string bytes() const {
    std::string out = "GGUF" + raw(version) + raw(n_tensors_ + static_cast<uint64_t>(extra_tensors)) +
                      raw(n_values_ + static_cast<uint64_t>(extra_values));
    out += values_ + infos_;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + payload_;
  }

 private:
  uint64_t n_values_ = 0, n_tensors_ = 0;
  std::string values_, infos_, payload_;
};

// Asserts that a Result failed, with all of these words in its sentence.
template <class R>
testing::AssertionResult fails_with(const R& result, const std::vector<std::string>& words) {
  if (result) return testing::AssertionFailure() << "it was accepted";
  const std::string& message = result.error().message;
  for (const std::string& word : words)
    if (message.find(word) == std::string::npos)
      return testing::AssertionFailure() << "'" << word << "' is not in: " << message;
  if (message.find('\n') != std::string::npos)
    return testing::AssertionFailure() << "more than one line: " << message;
  return testing::AssertionSuccess();
}

}  // namespace gannet::test
