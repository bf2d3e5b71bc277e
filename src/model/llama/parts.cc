#include "model/llama/parts.h"

#include <fmt/format.h>

#include <limits>

#include "weights/resident.h"

namespace gannet::llama {
namespace {

Status check_runs_on(const Linear& op, const Machine& machine, const std::string& name) {
  if (machine.device == nullptr) return ok();
  for (const LinearVariant& variant : linear_cuda())
    if (variant.fits(op, machine)) return ok();
  return Error{Errc::unsupported, fmt::format("{}: weights of format {} do not run on a CUDA device", name,
                                              weight_format_info(op.format).name)};
}

}  // namespace

Result<Projection> Projection::load(Loader& loader, const std::string& name, int64_t out, int64_t in, bool bias) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (out > kMax || in > kMax)
    return Error{Errc::unsupported, fmt::format("{}: [{}, {}] is larger than a matrix may be", name, out, in)};
  Projection p;
  GANNET_ASSIGN(p.weight_, loader.checkpoint.matrix(name + ".weight", out, in));
  if (bias) {
    GANNET_ASSIGN(p.bias_, loader.checkpoint.floats(name + ".bias", out));
  }
  const Linear op{p.weight_.format, static_cast<int32_t>(out), static_cast<int32_t>(in)};
  GANNET_TRY(check_runs_on(op, loader.machine, name));
  p.linear_ = plan(op, loader.machine);
  if (loader.integer && int_linear_takes(op.format) && in % kIntBlock == 0) {
    p.product_ = plan(IntLinear{op.in, 1, {{op.format, op.out}}}, loader.machine);
    p.rows_ = plan(IntRows{op.in}, loader.machine);
  }
  p.weight_ = weights::resident(p.weight_, loader.machine);
  p.bias_on_device_ = weights::device_copy(p.bias_, loader.machine);
  loader.weight_bytes += p.weight_.bytes();
  return p;
}

const float* Projection::bias() const {
  return bias_on_device_ != nullptr ? bias_on_device_ : bias_.empty() ? nullptr : bias_.data();
}

void Projection::forward(Pass& pass, View x, View y) const {
  if (!product_) return linear_({x, weight_, bias(), y}, pass.exec);
  const Arena::Scope scope(pass.exec.arena);
  const IntRowsView rows = int_rows_in(pass.exec.arena, x.dim(0), weight_.in);
  rows_({x, rows}, pass.exec);
  (*product_)({rows, {{weight_, bias(), y}}}, pass.exec);
}

View Projection::forward(Pass& pass, View x) const {
  const View y = pass.tensor(x.dim(0), weight_.out);
  forward(pass, x, y);
  return y;
}

int64_t Projection::workspace_bytes(int32_t rows, int32_t n_threads) const {
  if (product_) return int_rows_bytes(rows, weight_.in) + int_linear_workspace_bytes(product_->op, n_threads);
  return linear_workspace_bytes(linear_.op, rows, n_threads);
}

JointProjection JointProjection::of(const Loader& loader, std::initializer_list<const Projection*> parts) {
  IntLinear op;
  for (const Projection* p : parts) {
    if (!p->product_) return {};
    op.in = p->weight_.in;
    op.part[op.n_parts++] = p->product_->op.part[0];
  }
  JointProjection joint;
  joint.product_ = plan(op, loader.machine);
  return joint;
}

void JointProjection::forward(Pass& pass, View x, std::initializer_list<const Projection*> parts,
                              std::initializer_list<View> y) const {
  const View* out = y.begin();
  if (!product_) {
    for (const Projection* p : parts) p->forward(pass, x, *out++);
    return;
  }
  const Arena::Scope scope(pass.exec.arena);
  const Projection& first = **parts.begin();
  IntLinearArgs args;
  args.x = int_rows_in(pass.exec.arena, x.dim(0), first.weight_.in);
  first.rows_({x, args.x}, pass.exec);
  int i = 0;
  for (const Projection* p : parts) args.part[i++] = {p->weight_, p->bias(), *out++};
  (*product_)(args, pass.exec);
}

Result<Norm> Norm::load(Loader& loader, const std::string& name, int32_t width) {
  Norm n;
  GANNET_ASSIGN(n.weight_, loader.checkpoint.floats(name + ".weight", width));
  n.weight_on_device_ = weights::device_copy(n.weight_, loader.machine);
  const Config& c = loader.config;
  n.norm_ = plan(RmsNorm{width, static_cast<float>(c.rms_eps), c.norm_plus_one ? 1.0f : 0.0f}, loader.machine);
  return n;
}

void Norm::forward(Pass& pass, View x, View y) const {
  norm_({x, weight_on_device_ != nullptr ? weight_on_device_ : weight_.data(), y}, pass.exec);
}

View Norm::forward(Pass& pass, View x) const {
  const View y = pass.tensor(x.dim(0), x.dim(1));
  forward(pass, x, y);
  return y;
}

}  // namespace gannet::llama
