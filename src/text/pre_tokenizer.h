// Cuts text into the pieces that BPE works on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/split_patterns.h"

namespace gannet {

// Takes pieces, in order, each not empty and valid during the call only.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void piece(std::string_view text) = 0;
};

// A chain of cutting steps. Immutable, any thread.
class PreTokenizer {
 public:
  struct Step {
    enum class Kind {
      pattern,       // cut at what `match` finds
      literal,       // cut at the text `literal`
      numbers,       // cut at \p{N}
      punctuation,   // cut at P and ASCII punctuation
      white_space,   // cut at White_Space
      metaspace,     // blanks become `literal`, which may be put in front; cut before each of them if `cut`
      prefix_space,  // put a blank in front where there is none
    };
    enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };
    enum class Prepend { never, first, always };
    Kind kind;
    PatternMatch match = nullptr;
    std::string literal = {};
    Behavior behavior = Behavior::isolated;
    bool invert = false;
    Prepend prepend = Prepend::never;
    bool cut = true;
  };

  // From the components of a tokenizer.json, Sequences flattened. Refuses types and patterns that are not
  // implemented, and steps behind ByteLevel.
  static Result<PreTokenizer> from_components(const std::vector<Json>& components);
  static PreTokenizer from_steps(std::vector<Step> steps, bool byte_level);

  // Whether pieces go into the model as bytes (a ByteLevel step).
  bool byte_level() const { return byte_level_; }

  // Whether the beginning of the input is cut otherwise than the rest (Metaspace, prepend_scheme first).
  bool minds_start() const;

  // Cuts one stretch of text between added tokens. `at_start`: it is the beginning of the input.
  void split(std::string_view text, bool at_start, PieceSink& sink) const { run(0, text, at_start, sink); }

 private:
  void run(size_t step, std::string_view text, bool at_start, PieceSink& sink) const;
  void cut(size_t step, std::string_view text, bool at_start, PieceSink& sink) const;

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace gannet
