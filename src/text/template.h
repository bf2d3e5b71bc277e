// Chat templates: the Jinja text that a checkpoint ships to say how its prompts look.
//
// The language is Jinja2 as Hugging Face's transformers runs it (trim_blocks, lstrip_blocks, loop controls, an
// immutable sandbox, tojson without HTML escapes), without what would read files or change the caller's data. Text
// carries its owner through every operation, see docs/chat_encoding.md.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/span.h"

namespace gannet {

struct TemplateNode;

// What one render may use. The defaults take a few seconds at worst and are far above what any real template needs.
struct TemplateLimits {
  int64_t steps = 20'000'000;              // evaluated nodes, loop rounds, compared or copied items
  int64_t new_bytes = int64_t{256} << 20;  // text made by all operations together
  int64_t output_bytes = int64_t{64} << 20;
  int32_t depth = 400;  // nested evaluation, macros included
};

// A variable of the template. Strings and keys in `value` belong to `owner`; in the objects of a list named
// "messages", the values of `role` and `type` belong to the template, because templates build control tokens of
// them
// ('<|' + message.role + '|>') and the caller has checked them.
struct TemplateVariable {
  std::string name;
  Json value;
  TextSpan::Owner owner = TextSpan::Owner::client_owned;
};

// Immutable; any number of threads may render one Template.
class Template {
 public:
  // Errors: bad_file, "line N: ...". `name` is put before it.
  static Result<Template> parse(std::string_view source, std::string_view name = "chat template");

  // Renders. `now` is what strftime_now shows. Errors: bad_request with the template's own message for
  // raise_exception and for operations that fail; no_capacity when a limit is reached.
  Result<std::vector<TextSpan>> render(const std::vector<TemplateVariable>& variables, std::time_t now,
                                       const TemplateLimits& limits = {}) const;

  // Whether the source mentions a word, e.g. "tools" or "enable_thinking": a hint for callers, not an analysis.
  bool mentions(std::string_view word) const { return source_.find(word) != std::string::npos; }

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

 private:
  Template(std::string source, std::string name, std::unique_ptr<TemplateNode> root);
  std::string source_, name_;
  std::unique_ptr<TemplateNode> root_;
};

}  // namespace gannet
