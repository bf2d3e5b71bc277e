// Bytes as a safetensors file, or, where they begin with 'I', as an index. What comes back must be usable.
#include <cstdint>

#include "base/check.h"
#include "files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gannet;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (size > 0 && data[0] == 'I') {
    const auto map = files::parse_safetensors_index({reinterpret_cast<const char*>(data) + 1, size - 1}, "index");
    GANNET_CHECK(map || !map.error().message.empty(), "an error without words");
    return 0;
  }
  const auto tensors = files::parse_safetensors(bytes, "file", 3);
  if (!tensors) {
    GANNET_CHECK(!tensors.error().message.empty(), "an error without words");
    return 0;
  }
  unsigned sum = 0;
  for (const files::TensorInfo& t : *tensors) {
    GANNET_CHECK(t.shape.elements().has_value(), "a shape without a size");
    if (t.bytes.empty()) continue;
    GANNET_CHECK(t.bytes.data() >= bytes.data() && t.bytes.data() + t.bytes.size() <= bytes.data() + size,
                 "outside");
    sum += static_cast<unsigned>(t.bytes.front()) + static_cast<unsigned>(t.bytes.back());
  }
  GANNET_CHECK(sum < 4294967295u, "reads every end");
  return 0;
}
