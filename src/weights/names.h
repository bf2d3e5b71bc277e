// From the tensor names of a file to canonical names (see checkpoint.h). One table for each naming scheme.
#pragma once

#include <string>
#include <string_view>

namespace gannet::weights {

// A file's tensor under its canonical name; or, for a stack of experts, under one name for each expert e:
// name + e + first, and name + e + second for the second half of the rows where the stack holds two matrices.
struct CanonicalName {
  std::string name;
  std::string first, second;  // both empty: no stack

  bool stacked() const { return !first.empty(); }
};

// Released V4.1 names (unchanged) and those of transformers, with or without "model." in front.
CanonicalName canonical_v41(std::string_view file_name);
// transformers names of the Llama class: the prefixes that wrappers add are unified to "model.".
CanonicalName canonical_llama(std::string_view file_name);
// GGUF names of the Llama class. `post_norms`: Gemma, whose ffn_norm stands elsewhere.
CanonicalName canonical_gguf(std::string_view file_name, bool post_norms);

}  // namespace gannet::weights
