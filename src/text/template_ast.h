// Syntax tree of a chat template, and the parser that makes it. Internal to text/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gannet {

struct TemplateNode;
using TemplateNodePtr = std::unique_ptr<TemplateNode>;

struct TemplateNode {
  enum class Kind : uint8_t {
    // statements
    data,          // name: the text
    output,        // kids[0]
    for_loop,      // kids[0] target, kids[1] iterable, kids[2] condition or null; body, alternate (else)
    if_chain,      // kids: one condition a branch; branches: body of each, one more for else
    set,           // kids[0] target, kids[1] value
    set_block,     // kids[0] target, kids[1] filters applied to a `captured` node, or null; body
    macro,         // name; names: parameters, kids: their defaults (the last ones)
    call_block,    // kids[0] the call; names, branches-free; defaults in alternate; body
    filter_block,  // kids[0] filters applied to a `captured` node; body
    with,          // kids: target, value, target, value, ...; body
    group,         // body, no scope of its own
    loop_break,
    loop_continue,
    // expressions
    integer,
    real,
    text,
    boolean,
    none,
    name,       // name
    attribute,  // kids[0].name
    subscript,  // kids[0][kids[1]]
    slice,      // kids[0][kids[1]:kids[2]:kids[3]], any of the three may be null
    call,       // kids[0] callee, then arguments; the last names.size() are keyword arguments
    filter,     // kids[0] input, then arguments as for call; name
    test,       // as filter; flag: negated
    captured,   // the text that a block statement has rendered
    negate,
    plus,
    logical_not,
    logical_and,
    logical_or,
    binary,       // name: operator + - * / // % **
    concat,       // kids joined as text (~)
    compare,      // kids[0] names[0] kids[1] names[1] kids[2] ...
    conditional,  // kids[0] condition, kids[1] then, kids[2] else or null
    list,
    tuple,
    dict,  // kids: key, value, key, value, ...
  };

  Kind kind;
  bool flag = false;
  int32_t line = 0;
  int32_t height = 1;  // longest path down; bounded, so that evaluating and freeing recurse a bounded way
  std::string name;
  int64_t integer = 0;
  double real = 0;
  std::vector<TemplateNodePtr> kids;
  std::vector<std::string> names;
  std::vector<TemplateNodePtr> body, alternate;
  std::vector<std::vector<TemplateNodePtr>> branches;
};

constexpr int32_t kTemplateMaxHeight = 160;  // of real templates under 60

// Parses Jinja source as Hugging Face's transformers does: trim_blocks and lstrip_blocks on, loop controls,
// generation blocks. The root is a `group`. Refuses (bad_file, "line N: ...") what is no template, what nests too
// deep, and statements that would load other files (include, import, extends, block).
Result<TemplateNodePtr> parse_template(std::string_view source);

}  // namespace gannet
