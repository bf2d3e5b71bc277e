// Bytes as a config.json for every family, or, where they begin with "GGUF", as the metadata of a model. A config
// that is accepted must give an inventory of sane size.
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/inventory.h"
#include "model/llama/config.h"
#include "model/llama/inventory.h"

namespace {

using namespace gannet;

void use(const llama::Config& c) {
  GANNET_CHECK(c.n_heads % c.n_kv_heads == 0 && c.head_dim % 2 == 0 && c.query_scale > 0, "a rule let through");
  GANNET_CHECK(c.is_local.empty() || static_cast<int32_t>(c.is_local.size()) == c.n_layers, "is_local");
  GANNET_CHECK(c.is_moe.empty() || static_cast<int32_t>(c.is_moe.size()) == c.n_layers, "is_moe");
  if (int64_t{c.n_layers} * c.n_experts > 2000) return;  // valid, and slow to list a million times
  int64_t parameters = 0;
  for (const auto& spec : llama::inventory(c)) parameters += spec.elements();
  GANNET_CHECK(parameters == c.parameters(), "inventory {} parameters {}", parameters, c.parameters());
}

void use(const deepseek_v41::Config& c) {
  GANNET_CHECK(
      c.n_heads % c.o_groups == 0 && static_cast<int32_t>(c.ratios.size()) == c.n_layers + c.dspark.n_stages,
      "a rule let through");
  for (int32_t l = 0; l < c.n_layers; ++l)
    if (c.ratios[static_cast<size_t>(l)] > 0) GANNET_CHECK(c.index_source(l) >= c.kv_source(l), "layer {}", l);
  const int64_t experts = int64_t{c.n_layers} * c.n_experts + int64_t{c.dspark.n_stages} * c.dspark.n_experts;
  if (experts > 2000 || (c.vision && c.vision->n_layers > 100)) return;
  for (const auto& spec : deepseek_v41::inventory(c)) GANNET_CHECK(spec.bytes() > 0, "an empty weight");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= 4 && std::memcmp(data, "GGUF", 4) == 0) {
    const auto gguf = files::Gguf::parse({reinterpret_cast<const std::byte*>(data), size}, "file");
    if (!gguf) return 0;
    if (const auto config = llama::config_from_gguf(*gguf)) use(*config);
    return 0;
  }
  const auto json = Json::parse({reinterpret_cast<const char*>(data), size});
  if (!json) return 0;
  if (const auto config = deepseek_v41::config_from_json(*json, "config.json")) use(*config);
  if (const auto config = llama::config_from_json(*json, "config.json")) use(*config);
  return 0;
}
