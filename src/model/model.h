// What every model is to the engine: a KV spec, a row plan and a forward pass over rows.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kv/store/kv_spec.h"
#include "kv/store/kv_store.h"
#include "model/step.h"
#include "runtime/exec.h"

namespace gannet {

// What is rounded and quantised where: docs/numerics.md has the table.
enum class Numerics : uint8_t {
  reference,  // bf16 activations, fp8 (32) in front of every fp8/fp4 product, cache quantisers
  precise,    // bf16 activations, cache quantisers; the default
  float32,    // fp32 throughout, cache quantisers off: to compare with other implementations
  integer,    // precise, and products with integer GGUF weights take activations of 15 bits: the default of GGUF
};

struct ModelInfo {
  std::string family;  // "deepseek_v41", "llama", "qwen3", ...
  int32_t vocab = 0;
  int32_t hidden = 0;
  int32_t max_context = 0;
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
};

// Host-side description of one sequence's part of a step, from which row plans are made.
struct SeqRows {
  int32_t first_pos = 0;  // position of the first row
  int32_t n_rows = 0;
  int32_t end = 0;       // declared end T of the prompt (see Step::seq_end)
  int32_t n_logits = 1;  // logits wanted for the last n_logits positions before `end`
};

// Owner: the engine thread. Weights are borrowed from the checkpoint, which must outlive the model.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  virtual const kv::KvSpec& kv_spec() const = 0;

  // Fills Step::decoder_rows for these sequences; empty where every row runs every layer.
  virtual std::vector<int32_t> plan_rows(std::span<const SeqRows> seqs) const {
    (void)seqs;
    return {};
  }

  // Bytes of arena that a step of at most this size needs.
  virtual int64_t workspace_bytes(int32_t max_rows, int32_t max_logit_rows, int32_t max_pos) const = 0;

  // Runs the rows of `step`, reads and extends the cache, writes logits f32 [n_logit_rows, vocab].
  virtual void forward(const Step& step, kv::KvStore& store, View logits, Exec& exec) = 0;
};

}  // namespace gannet
