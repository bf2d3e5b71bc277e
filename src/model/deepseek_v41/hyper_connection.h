// One site's hyper-connection: streams in, one normed vector for the site, its output spread over the streams
// again.
#pragma once

#include "kernels/hyper_connection.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/context.h"
#include "model/deepseek_v41/weights.h"

namespace gannet::deepseek_v41 {

class HyperConnection {
 public:
  HyperConnection(const Config& config, SiteWeights weights, const Precision& precision, const Machine& machine);

  struct Mix {
    View pre;         // f32 [T, S]: for the NEXT site's collapse
    View post, comb;  // f32 [T, S], [T, S, S]: for this site's expand
  };
  // From the streams at the start of the site. `pre` is written where the caller wants it.
  Mix mix(StepContext& s, const View& h, View pre) const;
  // The site's input: streams collapsed by `pre` of the site before, then normed. [T, C]
  View collapse(StepContext& s, const View& h, const View& pre) const;
  // Streams after the site's output y [T, C], in place.
  void expand(StepContext& s, const View& y, View h, const Mix& m) const;

 private:
  SiteWeights w_;
  int32_t streams_;
  DType type_;
  Planned<Linear, LinearArgs> product_;
  Planned<HcMix, HcMixArgs> mix_;
  Planned<HcCollapse, HcCollapseArgs> collapse_;
  Planned<HcExpand, HcExpandArgs> expand_;
  Norm norm_;
};

}  // namespace gannet::deepseek_v41
