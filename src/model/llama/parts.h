// Pieces of a layer: a weight or a norm with the op that runs it, and what a step hands to all of them.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/add.h"
#include "kernels/int_linear.h"
#include "kernels/linear.h"
#include "kernels/rms_norm.h"
#include "kv/store/kv_store.h"
#include "model/llama/config.h"
#include "model/step.h"
#include "weights/checkpoint.h"

namespace gannet::llama {

// Where weights come from and what ops are planned for. Lives while the model is built.
struct Loader {
  const weights::Checkpoint& checkpoint;
  const Config& config;
  const Machine& machine;
  RowFormat cache_format;
  bool integer = false;  // integer products where a weight's format has them
  int64_t weight_bytes = 0;  // of all matrices loaded so far
};

// One step on its way through the layers.
struct Pass {
  const Step& step;
  kv::KvStore& store;
  Exec& exec;
  const float* rope = nullptr;        // [T, D/2, 2] cos and sin of full-attention layers
  const float* rope_local = nullptr;  // of sliding-window layers; null where there are none
  View tensor(int64_t rows, int64_t columns) { return exec.arena.tensor(DType::f32, {rows, columns}); }
};

// y = x W^T + bias, f32 to f32.
class Projection {
 public:
  static Result<Projection> load(Loader& loader, const std::string& name, int64_t out, int64_t in, bool bias);
  void forward(Pass& pass, View x, View y) const;  // [T,in] -> [T,out]
  View forward(Pass& pass, View x) const;
  const WeightView& weight() const { return weight_; }
  int64_t workspace_bytes(int32_t rows, int32_t n_threads) const;

 private:
  friend class JointProjection;
  const float* bias() const;

  WeightView weight_;
  std::vector<float> bias_;  // empty: none
  const float* bias_on_device_ = nullptr;
  Planned<Linear, LinearArgs> linear_;
  std::optional<Planned<IntLinear, IntLinearArgs>> product_;  // in place of linear_, where integer
  Planned<IntRows, IntRowsArgs> rows_;
};

// Up to three projections of one input. Where all are integer, x is quantised once and one op does them all; the
// bits are those of separate calls.
class JointProjection {
 public:
  static JointProjection of(const Loader& loader, std::initializer_list<const Projection*> parts);
  // `parts` are those that of() was given, y[i] is [T, out of part i].
  void forward(Pass& pass, View x, std::initializer_list<const Projection*> parts,
               std::initializer_list<View> y) const;

 private:
  std::optional<Planned<IntLinear, IntLinearArgs>> product_;  // none: one call each
};

class Norm {
 public:
  static Result<Norm> load(Loader& loader, const std::string& name, int32_t width);
  void forward(Pass& pass, View x, View y) const;  // may be in place
  View forward(Pass& pass, View x) const;          // [T,C]

 private:
  std::vector<float> weight_;
  const float* weight_on_device_ = nullptr;
  Planned<RmsNorm, RmsNormArgs> norm_;
};

}  // namespace gannet::llama
