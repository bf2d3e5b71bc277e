#include "engine/synthetic_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

namespace gannet::engine {
namespace {

using Names = std::initializer_list<std::string_view>;

// The first of a field's spellings that the config has.
Json* field(Json& config, Names names) {
  for (const std::string_view name : names)
    if (Json* value = config.find(name); value != nullptr && !value->is_null()) return value;
  return nullptr;
}

Status lower(Json& config, Names names, int32_t wanted, std::string_view flag, std::string_view name) {
  Json* value = field(config, names);
  const auto now = value == nullptr ? std::nullopt : value->as_int();
  if (!now)
    return Error{Errc::bad_request, fmt::format("{} is {}, {} has no {}", flag, wanted, name, *names.begin())};
  if (wanted > *now) return Error{Errc::bad_request, fmt::format("{} is {}, {} has {}", flag, wanted, name, *now)};
  *value = Json(int64_t{wanted});
  return ok();
}

// Entries of a list of layer ids that are left; returns how many.
size_t keep_ids(Json& ids, int32_t layers) {
  std::erase_if(ids.items(), [&](const Json& id) { return id.as_int().value_or(0) >= layers; });
  return ids.items().size();
}

void keep_front(Json* list, size_t n) {
  if (list != nullptr && list->items().size() > n) list->items().resize(n);
}

void cut_lists(Json& config, int32_t layers) {
  for (const std::string_view name : {"compress_ratios", "layer_types", "no_rope_layers"})
    keep_front(config.find(name), static_cast<size_t>(layers));
  for (const std::string_view name : {"kv_source_layer_ids", "kv_source_layers", "index_source_layer_ids",
                                      "index_source_layers", "dspark_target_layer_ids", "mlp_only_layers"})
    if (Json* ids = config.find(name)) keep_ids(*ids, layers);
  if (Json* ids = config.find("engram_layer_ids"))
    keep_front(config.find("engram_num_embeddings"), keep_ids(*ids, layers));
  for (const std::string_view name : {"num_nextn_predict_layers", "n_mtp_layers"})
    if (Json* stages = config.find(name)) *stages = Json(0);
  Json* source = field(config, {"candidate_source_layer_id", "candidate_source_layer"});
  if (source != nullptr && source->as_int().value_or(0) >= layers) *source = Json(-1);
}

}  // namespace

Status cut_config(Json& config, const SyntheticCut& cut, std::string_view name) {
  Json* nested = config.find("text_config");
  Json& text = nested != nullptr && nested->is_object() ? *nested : config;
  if (cut.layers > 0) {
    GANNET_TRY(lower(text, {"num_hidden_layers", "n_layers"}, cut.layers, "--weights-layers", name));
    cut_lists(text, cut.layers);
  }
  if (cut.experts > 0)
    GANNET_TRY(lower(text, {"n_routed_experts", "num_local_experts", "num_experts"}, cut.experts,
                     "--weights-experts", name));
  return ok();
}

}  // namespace gannet::engine
