#include "weights/spec.h"

namespace gannet::weights {

std::string_view part_name(Part part) {
  switch (part) {
    case Part::embedding:
      return "embedding";
    case Part::head:
      return "head";
    case Part::routed_experts:
      return "routed experts";
    case Part::shared_experts:
      return "shared experts";
    case Part::router:
      return "router";
    case Part::attention:
      return "attention";
    case Part::compressors_indexers:
      return "compressors, indexers";
    case Part::hyper_connections:
      return "hyper-connections";
    case Part::norms:
      return "norms";
    case Part::engram_tables:
      return "engram tables";
    case Part::engram_projections:
      return "engram projections";
    case Part::draft:
      return "draft model";
    case Part::vision:
      return "vision";
    case Part::ffn:
      return "feed-forward";
  }
  return "?";
}

int64_t WeightSpec::bytes() const {
  switch (stored) {
    case Stored::bf16:
      return 2 * elements();
    case Stored::f32:
      return 4 * elements();
    case Stored::fp8_32x32:
      return elements() + (out + 31) / 32 * ((in + 31) / 32);
    case Stored::fp8_1x32:
      return elements() + out * ((in + 31) / 32);
    case Stored::mxfp4_1x32:
      return elements() / 2 + out * ((in + 31) / 32);
  }
  return 0;
}

}  // namespace gannet::weights
