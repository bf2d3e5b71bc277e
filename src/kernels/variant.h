// How an op finds its implementation. Each op has a descriptor (what is fixed when a model is planned) and
// arguments (what changes with each call); each backend folder exports a span of variants, fastest first.
//
//   struct RmsNorm { int32_t width; float eps; };                          the descriptor
//   struct RmsNormArgs { View x, weight, out; };                           the arguments
//   std::span<const Variant<RmsNorm, RmsNormArgs>> rms_norm_cpu();         kernels/cpu
//   std::span<const Variant<RmsNorm, RmsNormArgs>> rms_norm_ref();         kernels/ref
//   std::span<const Variant<RmsNorm, RmsNormArgs>> rms_norm_cuda();        kernels/cuda; empty in a build without it
//   Planned<RmsNorm, RmsNormArgs> plan(const RmsNorm& op, const Machine& machine);
//
// Choosing happens once, at plan time; running never falls back. All variants other than the reference that one
// process may choose for an op give a row the same bits, whatever the number of rows.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "runtime/exec.h"

namespace gannet {

template <class Op, class Args>
struct Variant {
  std::string_view name;
  bool (*fits)(const Op& op, const Machine& machine);
  void (*run)(const Op& op, const Args& args, Exec& exec);
};

template <class Op, class Args>
struct Planned {
  Op op;
  const Variant<Op, Args>* variant = nullptr;
  void operator()(const Args& args, Exec& exec) const { variant->run(op, args, exec); }
};

// The first variant that fits, in the order of the spans. On the CPU the reference fits everything, so there always is
// one; a machine with a device runs the device's variants alone, and an op without one that fits is refused here.
template <class Op, class Args>
Planned<Op, Args> choose(const Op& op, const Machine& machine,
                         std::initializer_list<std::span<const Variant<Op, Args>>> backends,
                         std::span<const Variant<Op, Args>> device_backend = {}) {
  if (machine.device != nullptr) {
    for (const auto& variant : device_backend)
      if (variant.fits(op, machine)) return {op, &variant};
    GANNET_CHECK(false, "no variant for the device fits this op");
  }
  for (const auto& backend : backends)
    for (const auto& variant : backend)
      if (variant.fits(op, machine)) return {op, &variant};
  GANNET_CHECK(false, "no variant fits, not even the reference");
  return {};
}

}  // namespace gannet
