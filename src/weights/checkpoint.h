// The loader's one abstraction over model files: weights by canonical name, whatever the file's format and naming.
//
// Canonical names: those of the released V4.1 checkpoint for `deepseek_v41` ("layers.3.attn.wq_a.weight"); those of
// transformers for the Llama class ("model.layers.3.self_attn.q_proj.weight"). Each naming scheme found in files
// (released, transformers, GGUF) has one table in names_*.cc. Stacked experts (transformers' gate_up_proj and
// down_proj, GGUF's ffn_*_exps) answer to the names of single experts.
//
// Bytes stay in the mapped files and are never copied. Immutable after open, except that synthetic weights are made
// on first use under a lock; any thread may read. Views live as long as the checkpoint.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "files/gguf.h"
#include "files/safetensors.h"
#include "tensor/view.h"
#include "tensor/weight.h"
#include "weights/spec.h"

namespace gannet::weights {

enum class Container : uint8_t { safetensors, gguf, synthetic };
enum class Naming : uint8_t { released_v41, transformers_v41, llama, gguf };

// One weight as it lies in the file; part of the rows where it is one expert of a stacked tensor.
struct Found {
  const files::TensorInfo* tensor = nullptr;
  int64_t first_row = 0;  // in rows of the last dimension
  int64_t n_rows = 0;
};

struct SyntheticOptions {
  uint64_t seed = 1;
  // A tensor beyond this size repeats one random region of this size (one piece of memory mapped many times), so
  // that a 98 GB table costs no memory. Rounded to whole pages.
  int64_t max_unique_bytes = int64_t{1} << 30;
  // Where all tensors together are larger, tensors of one shape, storage and fill share memory, as evenly as that
  // allows: a model of any size fits, and every machine gets the same values. 0: no limit.
  int64_t max_bytes = int64_t{8} << 30;
};

class Checkpoint {
 public:
  // A GGUF file; a .safetensors file or index; a folder with config.json and either. Fails with not_found, io,
  // bad_file.
  static Result<Checkpoint> open(const std::filesystem::path& path);
  // Random weights in the formats that `specs` names. Equal seeds give equal bytes. Nothing is made before it is
  // asked for, so a model that takes only some layers or experts pays only for those.
  static Result<Checkpoint> synthetic(std::string family, std::vector<WeightSpec> specs,
                                      SyntheticOptions options = {});

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  Container container() const;
  Naming naming() const;
  // model_type of config.json or general.architecture of the GGUF file: "deepseek_v41", "llama", "qwen3moe", ...
  const std::string& family() const;
  const std::string& path() const;  // for messages
  const Json* config() const;       // parsed config.json; null for GGUF and synthetic
  std::string config_path() const;  // for messages; empty where config() is null
  const files::Gguf* gguf() const;  // null unless GGUF

  bool has(std::string_view name) const;
  std::optional<Found> find(std::string_view name) const;

  // A weight matrix [out, in] in the format it has in the file: F32, F16, BF16; F8_E4M3 with a ".scale" partner of
  // 32 x 32 or 1 x 32; I8 with a ".scale" of 1 x 32 (MXFP4); GGUF blocks. bad_file with name and values when
  // absent, of another shape, without its scale, or in a type that is no weight format. A leading dimension
  // (stacked matrices, one expert each) is folded into rows: [E, out, in] answers to matrix(name, E * out, in).
  Result<WeightView> matrix(std::string_view name, int64_t out, int64_t in) const;

  // A vector or small tensor as fp32 values: `n` elements in F32, F16 or BF16 (any shape). Refuses values that are
  // not finite, naming the first. This one copies.
  Result<std::vector<float>> floats(std::string_view name, int64_t n) const;

  // A tensor of F32, F16, BF16 as it lies, with exactly these dimensions (at most 4).
  Result<View> dense(std::string_view name, std::initializer_list<int64_t> shape) const;

  // The scales of a weight hold no NaN (and, for GGUF blocks, no infinity): else bad_file with name and row. Reads
  // every scale. matrix() does this itself in checkpoints of up to kCheckedBytes; beyond, it would read the whole
  // model.
  Status check_scales(std::string_view name, const WeightView& weight) const;
  static constexpr int64_t kCheckedBytes = int64_t{1} << 30;

  int64_t n_tensors() const;
  int64_t payload_bytes() const;
  std::span<const files::TensorInfo> tensors() const;  // as the files have them
  std::vector<std::string_view> names() const;  // canonical, in no order; experts one by one, scales included

  // Hints for the kernel about the pages of a weight.
  void will_need(const WeightView& weight) const;
  void dont_need(const WeightView& weight) const;

 private:
  struct Impl;
  explicit Checkpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gannet::weights
