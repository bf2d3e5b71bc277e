// Rewrites text before it is cut: Unicode normal forms, prefixes, replacements.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/unicode.h"

namespace gannet {

// Text with the owner of each byte.
struct OwnedText {
  std::string text;
  // Same length as text; 1 = client_owned. A byte that a rewrite made from bytes of both owners is client_owned.
  std::string client;
};

// A chain of rewriting steps. Immutable, any thread.
class Normalizer {
 public:
  struct Step {
    enum class Kind { form, lower, prepend, replace, strip };
    Kind kind;
    NormalForm form = NormalForm::nfc;
    std::string pattern = {};  // replace: literal
    std::string content = {};  // prepend, replace
    bool left = false, right = false;
  };

  // From the components of a tokenizer.json, Sequences flattened. Refuses types and patterns that are not
  // implemented.
  static Result<Normalizer> from_components(const std::vector<Json>& components);
  static Normalizer from_steps(std::vector<Step> steps);

  bool empty() const { return steps_.empty(); }
  bool cuts_front() const;  // a Strip on the left
  void apply(OwnedText& text) const;
  std::string apply(std::string_view text) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace gannet
