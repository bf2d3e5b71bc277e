#include "model/deepseek_v41/layer.h"

#include <utility>

namespace gannet::deepseek_v41 {

Layer::Layer(const Config& config, int32_t layer, LayerWeights w, const CacheMap& map,
             comm::ExpertParallel& experts, const Precision& precision, const Machine& machine)
    : attention_site_(config, std::move(w.attention_site), precision, machine),
      moe_site_(config, std::move(w.moe_site), precision, machine),
      attention_(config, layer, std::move(w.attention), map, precision, machine),
      moe_(config, layer, std::move(w.moe), experts, precision, machine) {
  if (w.engram) engram_.emplace(config, layer, std::move(*w.engram), precision, machine);
}

void Layer::engram(StepContext& s, View h, const int64_t* row_ids) const {
  if (!engram_) return;
  const Arena::Scope scope(s.exec.arena);
  engram_->forward(s, h, row_ids);  // [N, S, C], in place
}

void Layer::write_compressed(StepContext& s, const View& h, const View& pre) const {
  const Arena::Scope scope(s.exec.arena);
  attention_.write_compressed(s, attention_site_.collapse(s, h, pre));  // [T, C]
}

void Layer::forward(StepContext& s, View h, View pre, int32_t n_run) const {
  const Arena::Scope scope(s.exec.arena);
  const View run = h.rows(0, n_run);                           // [T, S, C]
  const View pre_a = s.tensor(DType::f32, {n_run, h.dim(1)});  // [T, S]
  const HyperConnection::Mix a = attention_site_.mix(s, run, pre_a);
  View x = attention_site_.collapse(s, h, pre);  // [N, C]: of the site before
  View y = attention_.forward(s, x, n_run);      // [T, C]
  if (n_run == 0) return;
  attention_site_.expand(s, y, run, a);  // [T, S, C], in place

  const HyperConnection::Mix f = moe_site_.mix(s, run, pre.rows(0, n_run));  // for the next layer
  x = moe_site_.collapse(s, run, pre_a);                                     // [T, C]
  y = moe_.forward(s, x);                                                    // [T, C]
  moe_site_.expand(s, y, run, f);                                            // [T, S, C], in place
}

}  // namespace gannet::deepseek_v41
