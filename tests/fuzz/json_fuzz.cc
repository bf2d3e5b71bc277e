// Bytes as JSON. What parses must survive being written and read again, and never nest deeper than allowed.
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/json.h"

namespace {

int depth(const gannet::Json& json) {
  int inner = 0;
  for (const auto& item : json.items()) inner = std::max(inner, depth(item));
  for (const auto& [key, value] : json.members()) inner = std::max(inner, depth(value));
  return inner + (json.is_array() || json.is_object() ? 1 : 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gannet::Json;
  const auto json = Json::parse({reinterpret_cast<const char*>(data), size}, 16);
  if (!json) return 0;
  GANNET_CHECK(depth(*json) <= 16, "depth {}", depth(*json));
  const auto again = Json::parse(json->dump());
  GANNET_CHECK(again && *again == *json, "changed by writing");
  GANNET_CHECK(!json->dump_python().empty(), "no text");
  return 0;
}
