// What a model expects to find in its checkpoint: one entry per weight under its canonical name. Synthetic weights
// are made from it, and a real checkpoint is validated against it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gannet::weights {

// Parts of a model, for byte totals and memory plans.
enum class Part : uint8_t {
  embedding,
  head,
  routed_experts,
  shared_experts,
  router,
  attention,
  compressors_indexers,
  hyper_connections,
  norms,
  engram_tables,
  engram_projections,
  draft,
  vision,
  ffn,
};
std::string_view part_name(Part part);
constexpr int kParts = static_cast<int>(Part::ffn) + 1;

// How the released format stores a weight.
enum class Stored : uint8_t {
  bf16,
  f32,
  fp8_32x32,   // F8_E4M3 [out, in] and "<name without .weight>.scale" F8_E8M0 [ceil(out/32), ceil(in/32)]
  fp8_1x32,    // F8_E4M3 [out, in] and .scale [out, in/32]
  mxfp4_1x32,  // I8 [out, in/2] and .scale [out, in/32]
};

// What synthetic values look like.
enum class Fill : uint8_t {
  matrix,     // standard deviation about in^-1/2
  embedding,  // standard deviation about 1
  norm,       // about 1
  offset,     // about 0, small
};

struct WeightSpec {
  std::string name;         // canonical, with ".weight" where the file has it
  int32_t rank = 2;         // 1: a vector of `in` elements; out is 1
  int64_t out = 1, in = 0;  // logical elements, not packed ones
  Stored stored = Stored::bf16;
  Part part = Part::ffn;
  Fill fill = Fill::matrix;
  bool optional = false;  // a checkpoint may lack it

  int64_t elements() const { return out * in; }
  int64_t bytes() const;  // codes and scales
  bool has_scale() const { return stored != Stored::bf16 && stored != Stored::f32; }
};

}  // namespace gannet::weights
