// State of one step as it goes through the layers, and the small helpers that keep the layers' code to one op a
// line.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/linear.h"
#include "kernels/quantize_rows.h"
#include "kernels/rms_norm.h"
#include "kernels/window.h"
#include "kv/store/kv_store.h"
#include "model/deepseek_v41/precision.h"
#include "model/step.h"
#include "runtime/exec.h"

namespace gannet::deepseek_v41 {

// For tests: sees, and may overwrite, what passes between layers. Never set in service.
class Probe {
 public:
  virtual ~Probe() = default;
  virtual void before_layer(int32_t layer, View h, View pre) { (void)layer, (void)h, (void)pre; }
  virtual void after_layer(int32_t layer, View h, View pre) { (void)layer, (void)h, (void)pre; }
  // A named value of a layer, rows as the layer has them.
  virtual void value(int32_t layer, std::string_view name, View value) { (void)layer, (void)name, (void)value; }
};

// The rows that layers work on: all of the step's in order, or, past the boundary of the decoder half, compacted
// ones.
struct Rows {
  const int32_t* index = nullptr;  // row of the step
  const int32_t* seq = nullptr;
  const int32_t* pos = nullptr;
  const uint8_t* flags = nullptr;
};

struct StepContext {
  const Step& step;
  kv::KvStore& store;
  Exec& exec;
  Rows rows;
  Probe* probe = nullptr;

  // The last indexer's choice for each of `rows`, and the candidates that later ones choose from.
  int32_t* selected = nullptr;      // [T, topk]
  int32_t* n_selected = nullptr;    // [T]
  int32_t* candidates = nullptr;    // [T, candidate blocks]
  int32_t* n_candidates = nullptr;  // [T]

  View tensor(DType type, std::initializer_list<int64_t> shape) { return exec.arena.tensor(type, shape); }
  RingRows ring(int i) const { return store.ring(i, step.seq_ring_slot); }
  PagedRows plane(int i) const { return store.plane(i, step.block_table, step.max_blocks); }
  RecentRows recent(const StepRows& own, int ring_idx) const {
    return {own, ring(ring_idx), step.seq_first_row, step.seq_first_pos};
  }
  void show(int32_t layer, std::string_view name, const View& value) const {
    if (probe != nullptr) probe->value(layer, name, value);
  }
};

// y = x W^T with the input's quantiser where the numeric mode has one.
class Projection {
 public:
  Projection() = default;
  // y: type of the result. Weight [out, in].
  Projection(const WeightView& weight, DType y, const Precision& precision, const Machine& machine)
      : Projection(weight, 1, precision.quantizes_input(weight.format), y, precision, machine) {}
  // Group g of the input's channels times rows [g * out, (g + 1) * out) of the weight. Never through the quantiser.
  static Projection grouped(const WeightView& weight, int32_t groups, DType y, const Precision& precision,
                            const Machine& machine) {
    return Projection(weight, groups, false, y, precision, machine);
  }
  View operator()(StepContext& s, const View& x) const {  // [T, groups * in] -> [T, groups * out]
    const View y = s.tensor(linear_.op.y, {x.dim(0), weight_.out});
    into(s, x, y);
    return y;
  }
  void into(StepContext& s, View x, const View& y) const {
    const Arena::Scope scope(s.exec.arena);
    if (quantizes_) {
      const View coded = s.tensor(x.dtype, {x.dim(0), x.dim(1)});
      quantize_({x, coded}, s.exec);
      x = coded;
    }
    linear_({x, weight_, nullptr, y}, s.exec);
  }

 private:
  Projection(const WeightView& weight, int32_t groups, bool quantizes, DType y, const Precision& precision,
             const Machine& machine)
      : weight_(weight), quantizes_(quantizes) {
    const DType x = precision.activation();
    linear_ = plan(Linear{weight.format, weight.out / groups, weight.in, groups, x, y}, machine);
    if (quantizes_) quantize_ = plan(QuantizeRows{RowFormat::fp8_ue8m0, weight.in, 1, x, x}, machine);
  }
  WeightView weight_;
  bool quantizes_ = false;
  Planned<Linear, LinearArgs> linear_;
  Planned<QuantizeRows, QuantizeRowsArgs> quantize_;
};

// RMS norm with its weight.
class Norm {
 public:
  Norm() = default;
  Norm(const std::vector<float>& weight, double eps, const Precision& precision, const Machine& machine)
      : weight_(weight),
        norm_(plan(RmsNorm{static_cast<int32_t>(weight.size()), static_cast<float>(eps), 0, precision.activation(),
                           precision.activation()},
                   machine)) {}
  View operator()(StepContext& s, View x) const {  // [T, n], in place
    norm_({x, weight_.data(), x}, s.exec);
    return x;
  }

 private:
  std::vector<float> weight_;
  Planned<RmsNorm, RmsNormArgs> norm_;
};

}  // namespace gannet::deepseek_v41
