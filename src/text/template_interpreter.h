// Runs a parsed chat template. Internal to text/: use text/template.h.
//
// The first error sticks: fail() records it and returns undefined, after which every step returns at once; render()
// reports it at the end. All work is counted against the limits, so a template can neither hang nor fill the
// memory.
#pragma once

#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template.h"
#include "text/template_ast.h"
#include "text/template_value.h"

namespace gannet {

struct TemplateScope {
  TemplateScope* parent = nullptr;
  std::vector<std::pair<std::string_view, TemplateValue>> variables;  // names borrow from the tree or the arena
};

class TemplateInterpreter {
 public:
  using Value = TemplateValue;
  using Arguments = TemplateArguments;
  using Node = TemplateNode;

  TemplateInterpreter(const TemplateLimits& limits, std::time_t now) : limits_(limits), now_(now) {}

  // Runs the tree with the global variables; the text it writes, or the error.
  Result<TemplateText> run(const Node& root, const std::vector<std::pair<std::string, Value>>& globals);

  // ---- for filters, tests, methods and functions ----
  Value fail(std::string_view what, Errc code = Errc::bad_request);
  bool failed() const { return error_.has_value(); }
  // Counts work; false (and failed) when the limit is reached. Bytes are those of new text, items those of new
  // lists.
  bool charge(int64_t steps);
  bool charge_bytes(int64_t bytes);
  std::time_t now() const { return now_; }

  Value make(TemplateText text);  // counts its bytes
  Value make_list(std::vector<Value> items, Value::Kind kind = Value::Kind::list);
  Value make_dict(std::vector<std::pair<Value, Value>> items, Value::Kind kind = Value::Kind::dict);
  Value make_function(std::string_view name, TemplateCallable::Function function, Value self = {});
  // From JSON; every string and key has `owner`. `charge` has to be asked for by the caller.
  Value from_json(const Json& json, TextOwner owner);

  bool truthy(const Value& value) const;
  bool equal(const Value& a, const Value& b);
  bool less(const Value& a, const Value& b);  // fails when they have no order
  bool contains(const Value& container, const Value& item);
  std::optional<int64_t> length(const Value& value) const;
  std::optional<std::vector<Value>> iterate(const Value& value);  // fails when it cannot be iterated
  // Python's str() and repr().
  TemplateText to_text(const Value& value);
  TemplateText to_repr(const Value& value);
  Value* find_key(TemplateDict& dict, const Value& key);
  Value* find_key(TemplateDict& dict, std::string_view key);
  void set_key(TemplateDict& dict, const Value& key, Value value);
  Value get_attribute(const Value& object, std::string_view name);  // a.name
  Value get_item(const Value& object, const Value& key);            // a[key]
  // "a.b.0" along get_item, as the attribute argument of filters. `absent` takes the place of what is not there.
  Value get_path(const Value& object, const Value& path, const Value* absent = nullptr);
  Value binary(std::string_view op, const Value& a, const Value& b);
  Value call(const Value& callee, const Arguments& arguments);
  Value apply_filter(std::string_view name, const Value& input, const Arguments& arguments);
  bool apply_test(std::string_view name, const Value& input, const Arguments& arguments);

 private:
  enum class Flow : uint8_t { normal, loop_break, loop_continue };

  Flow execute(const std::vector<TemplateNodePtr>& body);
  Flow execute(const Node& node);
  Flow execute_for(const Node& node);
  Flow execute_if(const Node& node);
  Flow execute_loop_body(const Node& node, const std::vector<Value>& items);
  void execute_set(const Node& node);
  void execute_with(const Node& node);
  void define_macro(const Node& node);
  void call_block(const Node& node);
  TemplateText capture(const std::vector<TemplateNodePtr>& body);  // in a scope of its own
  void write(const Value& value);
  void write(TemplateText text);

  Value evaluate(const Node& node);
  Value evaluate_inner(const Node& node);
  Value evaluate_operator(const Node& node);
  Value evaluate_name(const Node& node);
  Value evaluate_compare(const Node& node);
  Value evaluate_slice(const Node& node);
  Value evaluate_call(const Node& node);
  Value evaluate_sequence(const Node& node, Value::Kind kind);
  Value evaluate_dict(const Node& node);
  Value evaluate_sign(const Node& node);
  Arguments evaluate_arguments(const Node& node);
  Value call_macro(const TemplateCallable& macro, const Arguments& arguments);
  Value add(const Value& a, const Value& b);
  Value repeat(const Value& sequence, int64_t times);
  Value format_percent(const TemplateText& format, const Value& values);
  Value arithmetic(std::string_view op, const Value& a, const Value& b);
  Value integer_arithmetic(std::string_view op, int64_t a, int64_t b);

  void assign(const Node& target, const Value& value);
  void set_variable(std::string_view name, Value value);
  const Value* find_variable(std::string_view name) const;
  // A new innermost scope below `parent`, and back to `previous`. Its memory is reused unless a macro was defined
  // in it, which may be called later.
  TemplateScope* push_scope(TemplateScope* parent);
  void pop_scope(TemplateScope* previous, int64_t n_captures_before);

  const TemplateLimits& limits_;
  std::time_t now_;
  int64_t steps_ = 0, bytes_ = 0;
  int32_t depth_ = 0;
  int32_t line_ = 0;
  std::optional<Error> error_;
  TemplateText output_;
  Value captured_;  // what a block statement's filters start from
  TemplateScope* scope_ = nullptr;
  int64_t n_captures_ = 0;  // macros defined so far
  std::deque<TemplateScope> scopes_;
  std::deque<TemplateList> lists_;
  std::deque<TemplateDict> dicts_;
  std::deque<TemplateCallable> callables_;
};

// Looks an argument up by position or name; null when it was not given.
const TemplateValue* template_argument(const TemplateArguments& arguments, size_t position, std::string_view name);

// Methods of strings, dicts and lists; null when there is none of that name.
TemplateCallable::Function find_template_method(const TemplateValue& self, std::string_view name);
// Functions that every template can call: range, dict, namespace, raise_exception, strftime_now, ...
TemplateCallable::Function find_template_global(std::string_view name);

// JSON text as Python's json.dumps writes it. Strings keep their owners; what holds them together is the
// template's.
struct TemplateJsonStyle {
  bool ensure_ascii = false;
  int64_t indent = -1;  // negative: one line
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};
TemplateText template_to_json(TemplateInterpreter& in, const TemplateValue& value, const TemplateJsonStyle& style);
// Python's repr(float).
std::string python_real(double value);

}  // namespace gannet
