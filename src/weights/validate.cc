#include "weights/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace gannet::weights {
namespace {

using files::StorageType;

constexpr size_t kShown = 20;

StorageType stored_type(Stored stored) {
  switch (stored) {
    case Stored::bf16:
      return StorageType::bf16;
    case Stored::f32:
      return StorageType::f32;
    case Stored::mxfp4_1x32:
      return StorageType::i8;
    default:
      return StorageType::f8_e4m3;
  }
}

WeightFormat stored_format(Stored stored) {
  switch (stored) {
    case Stored::bf16:
      return WeightFormat::bf16;
    case Stored::f32:
      return WeightFormat::f32;
    case Stored::fp8_32x32:
      return WeightFormat::fp8_32x32;
    case Stored::fp8_1x32:
      return WeightFormat::fp8_1x32;
    case Stored::mxfp4_1x32:
      return WeightFormat::mxfp4_1x32;
  }
  return WeightFormat::none;
}

class Validator {
 public:
  Validator(const Checkpoint& checkpoint, bool exact_types) : checkpoint_(checkpoint), exact_types_(exact_types) {}

  void check(const WeightSpec& spec) {
    const auto found = checkpoint_.find(spec.name);
    if (!found) {
      if (!spec.optional) problem(fmt::format("there is no tensor '{}'", spec.name));
      return;
    }
    expected_.insert(spec.name);
    const files::TensorInfo& tensor = *found->tensor;
    if (exact_types_ && tensor.type != stored_type(spec.stored))
      return problem(fmt::format("tensor '{}' has the type {}, the config asks for {}", spec.name,
                                 tensor.type_text(), storage_type_info(stored_type(spec.stored)).name));
    PartTotal& part = result_.parts[static_cast<size_t>(spec.part)];
    if (spec.rank == 1) {
      if (!(tensor.shape == files::Shape{spec.in}))
        return problem(fmt::format("tensor '{}' {} is not the [{}] that the config asks for", spec.name,
                                   tensor.shape.text(), spec.in));
      part.bytes += static_cast<int64_t>(tensor.bytes.size());
    } else {
      const auto view = checkpoint_.matrix(spec.name, spec.out, spec.in);
      if (!view) return problem(view.error().message);
      if (exact_types_ && view->format != stored_format(spec.stored))
        return problem(fmt::format("the scales of tensor '{}' are {}, the config asks for {}", spec.name,
                                   weight_format_info(view->format).name,
                                   weight_format_info(stored_format(spec.stored)).name));
      part.bytes += view->bytes();
      if (view->scales != nullptr) scale(spec, part);
    }
    part.tensors += 1;
    part.parameters += spec.elements();
  }

  // What the checkpoint has and no spec asks for.
  void check_rest(std::span<const std::string_view> ignored) {
    for (const std::string_view name : checkpoint_.names()) {
      if (expected_.contains(name) || expected_scales_.contains(std::string(name))) continue;
      const bool known = std::any_of(ignored.begin(), ignored.end(),
                                     [&](std::string_view prefix) { return name.starts_with(prefix); });
      if (!known) problem(fmt::format("the config does not ask for tensor '{}'", name.substr(0, 200)));
    }
  }

  Validation finish() {
    for (const PartTotal& part : result_.parts) {
      result_.total.tensors += part.tensors;
      result_.total.parameters += part.parameters;
      result_.total.bytes += part.bytes;
    }
    return std::move(result_);
  }

 private:
  void scale(const WeightSpec& spec, PartTotal& part) {
    std::string_view stem = spec.name;
    if (stem.ends_with(".weight")) stem.remove_suffix(7);
    expected_scales_.insert(std::string(stem) + ".scale");
    part.tensors += 1;
  }
  void problem(std::string text) {
    ++result_.n_problems;
    if (result_.problems.size() < kShown) result_.problems.push_back(std::move(text));
  }

  const Checkpoint& checkpoint_;
  bool exact_types_;
  std::unordered_set<std::string_view> expected_;  // names of specs, which outlive this
  std::unordered_set<std::string> expected_scales_;
  Validation result_;
};

}  // namespace

Validation validate(const Checkpoint& checkpoint, std::span<const WeightSpec> specs, bool exact_types,
                    std::span<const std::string_view> ignored) {
  Validator validator(checkpoint, exact_types);
  for (const WeightSpec& spec : specs) validator.check(spec);
  validator.check_rest(ignored);
  return validator.finish();
}

}  // namespace gannet::weights
