// A model's config.json with fewer layers and experts, for synthetic weights of a model that is too large to run
// whole. Field names are those of config.json, nested under text_config or flat. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace gannet::engine {

struct SyntheticCut {
  int32_t layers = 0;   // keep the first ones; 0: all
  int32_t experts = 0;  // routed experts of each layer; 0: all
  bool operator==(const SyntheticCut&) const = default;
};

// Cuts in place. Lists with an entry for each layer keep their front, lists of layer ids the ids that are left, a
// candidate source beyond them is off. Where layers go, V4.1's draft layers go too: they read from layers at the
// end. Fails with bad_request, naming the flag, where the config has fewer of them or does not say how many.
// Whether the rest is a legal model the reader of the config decides.
Status cut_config(Json& config, const SyntheticCut& cut, std::string_view name);

}  // namespace gannet::engine
