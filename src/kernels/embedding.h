// Looks up the embedding row of each token.
//
//   table      any WeightFormat [V, C]
//   token      i32 [T]                  each in [0, V)
//   row_embed  i32 [T] or nullptr       row of `embeds` that stands in for the table's, or -1
//   embeds     f32 [n_embeds, C]        taken as it is: `scale` is not applied
//   out        f32 or bf16 [T, C]       out: rows may be strided
//   out[t] = round( scale * table[token[t]] )   or   round( embeds[row_embed[t]] )
//
// Error  f32: exact for scale 1, else one rounding of the product; bf16: one more rounding.
// Fails  a token or embed row out of range is a bug of the caller and aborts.
#pragma once

#include "kernels/variant.h"
#include "tensor/weight.h"

namespace gannet {

struct Embedding {
  WeightFormat format = WeightFormat::none;
  int32_t width = 0;
  float scale = 1;
  DType out = DType::f32;
};

struct EmbeddingArgs {
  WeightView table;
  const int32_t* token = nullptr;
  const int32_t* row_embed = nullptr;
  View embeds;
  View out;
};

// Aborts unless the arguments have the shapes and types of `op`. Every variant begins with it.
void check_embedding(const Embedding& op, const EmbeddingArgs& args);

using EmbeddingVariant = Variant<Embedding, EmbeddingArgs>;
std::span<const EmbeddingVariant> embedding_cpu();
std::span<const EmbeddingVariant> embedding_cuda();
std::span<const EmbeddingVariant> embedding_ref();
Planned<Embedding, EmbeddingArgs> plan(const Embedding& op, const Machine& machine);

}  // namespace gannet
