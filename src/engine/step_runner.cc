#include "engine/step_runner.h"

#include <algorithm>

namespace gannet::engine {

bool wanted(const SampleState& state) { return !state.ended && !state.cancelled.load(std::memory_order_relaxed); }

void note_sampled(SampleState& state, int32_t token) {
  state.counts.add(token);
  state.last_token = token;
  ++state.n_generated;
  const auto& stops = state.params.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) state.ended = true;
}

}  // namespace gannet::engine
