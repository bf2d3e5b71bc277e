// Llama 2/3, SmolLM2, Qwen 2.5, Qwen 3 (dense and MoE) and Gemma 3 (text): one forward pass, told apart by
// llama::Config alone.
//
// Rows are independent: one-shot prefill, chunks, decode and any batch give a row the same bits (the ops promise
// it, and nothing here looks at more than a row). Logits are computed for Step::logit_rows only.
//
// Numerics. Between ops activations are fp32 in every mode. In `integer` products with integer GGUF formats take
// them as 15 bits per block of 32 (kernels/int_linear.h); elsewhere they stay fp32: the released models hold no activation quantiser to follow, and on
// the CPU a product costs the same whether its input is fp32 or bf16, so rounding to bf16 between ops would only
// lose accuracy. What differs is the cache: keys (after RoPE) and values are f32 in `float32` mode and f16 in
// `precise` and `reference`. f16 and not bf16, because three more bits of mantissa are worth more here than range:
// keys and values are a normalised row times a weight, orders of magnitude below 65,504. GGUF weights mean the
// exact fp32 values of tensor/weight.h in every mode; bf16 and f16 weights themselves.
//
// Cache: planes "layers.N.k" and "layers.N.v" of width G * D, one row a token, 16 tokens a block; no rings. Layers
// with a sliding window keep all rows and read the last `sliding_window`.
#pragma once

#include <memory>

#include "base/result.h"
#include "model/llama/config.h"
#include "model/model.h"
#include "weights/checkpoint.h"

namespace gannet::llama {

constexpr int32_t kBlockTokens = 16;

// The config that lies in the checkpoint: config.json or GGUF metadata. Fails as config.h says.
Result<Config> config_of(const weights::Checkpoint& checkpoint);

// Weights are borrowed: `checkpoint` must outlive the model. Fails with bad_file (a weight that is absent or of
// another shape, with its name) or unsupported (a shape no op takes, with its values).
Result<std::unique_ptr<Model>> create(const weights::Checkpoint& checkpoint, const Config& config,
                                      Numerics numerics, const Machine& machine);

}  // namespace gannet::llama
