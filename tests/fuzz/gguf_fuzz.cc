// Bytes as a GGUF file. Every value and tensor that comes back must be readable.
#include <cstdint>

#include "base/check.h"
#include "files/gguf.h"

namespace {

int64_t use(const gannet::files::GgufValue& v) {
  int64_t sum = 0;
  if (const auto b = v.as_bool()) sum += *b;
  if (const auto n = v.as_int()) sum += *n & 1;
  if (const auto x = v.as_double()) sum += *x > 0;
  if (const auto s = v.as_string())
    for (const char c : *s) sum += c;
  if (const auto list = v.as_strings())
    for (const auto& s : *list) sum += static_cast<int64_t>(s.size()) + (s.empty() ? 0 : s.back());
  if (const auto list = v.as_ints()) sum += static_cast<int64_t>(list->size());
  if (const auto list = v.as_floats()) sum += static_cast<int64_t>(list->size());
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gannet;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto gguf = files::Gguf::parse(bytes, "file");
  if (!gguf) {
    GANNET_CHECK(!gguf.error().message.empty(), "an error without words");
    return 0;
  }
  int64_t sum = 0;
  for (const auto& [key, value] : gguf->values()) {
    GANNET_CHECK(gguf->value(key) != nullptr, "a key that is not found");
    sum += use(value);
  }
  for (const files::TensorInfo& t : gguf->tensors()) {
    GANNET_CHECK(gguf->find(t.name) == &t, "a tensor that is not found");
    if (t.bytes.empty()) continue;
    GANNET_CHECK(t.bytes.data() + t.bytes.size() <= bytes.data() + size, "outside");
    sum += static_cast<int64_t>(t.bytes.front()) + static_cast<int64_t>(t.bytes.back());
  }
  GANNET_CHECK(sum != INT64_MIN, "reads everything");
  return 0;
}
