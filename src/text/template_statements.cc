#include <fmt/format.h>

#include "text/template_interpreter.h"

namespace gannet {

using Kind = TemplateNode::Kind;
using ValueKind = TemplateValue::Kind;

Result<TemplateText> TemplateInterpreter::run(const Node& root,
                                              const std::vector<std::pair<std::string, Value>>& globals) {
  scope_ = push_scope(nullptr);
  for (const auto& [name, value] : globals) scope_->variables.emplace_back(name, value);
  scope_ = push_scope(scope_);  // what the template sets may hide a global, and does not change it
  execute(root.body);
  if (failed()) return *error_;
  return std::move(output_);
}

TemplateValue TemplateInterpreter::fail(std::string_view what, Errc code) {
  if (!error_) error_ = Error{code, fmt::format("line {}: {}", line_, what)};
  return {};
}

bool TemplateInterpreter::charge(int64_t steps) {
  if (failed()) return false;
  if (steps < 0 || steps > limits_.steps - steps_) {
    fail(fmt::format("the template takes more than {} steps", limits_.steps), Errc::no_capacity);
    return false;
  }
  steps_ += steps;
  return true;
}

bool TemplateInterpreter::charge_bytes(int64_t bytes) {
  if (failed()) return false;
  if (bytes < 0 || bytes > limits_.new_bytes - bytes_) {
    fail(fmt::format("the template makes more than {} bytes of text", limits_.new_bytes), Errc::no_capacity);
    return false;
  }
  bytes_ += bytes;
  return true;
}

TemplateScope* TemplateInterpreter::push_scope(TemplateScope* parent) {
  charge_bytes(static_cast<int64_t>(sizeof(TemplateScope)));
  return &scopes_.emplace_back(TemplateScope{parent, {}});
}

void TemplateInterpreter::pop_scope(TemplateScope* previous, int64_t n_captures_before) {
  if (n_captures_ == n_captures_before && !scopes_.empty() && &scopes_.back() == scope_) {
    scopes_.pop_back();
    bytes_ -= static_cast<int64_t>(sizeof(TemplateScope));
  }
  scope_ = previous;
}

void TemplateInterpreter::set_variable(std::string_view name, Value value) {
  for (auto& [known, slot] : scope_->variables) {
    if (known != name) continue;
    slot = std::move(value);
    return;
  }
  scope_->variables.emplace_back(name, std::move(value));
}

const TemplateValue* TemplateInterpreter::find_variable(std::string_view name) const {
  for (const TemplateScope* scope = scope_; scope != nullptr; scope = scope->parent)
    for (const auto& [known, value] : scope->variables)
      if (known == name) return &value;
  return nullptr;
}

void TemplateInterpreter::write(TemplateText text) {
  if (static_cast<int64_t>(output_.size() + text.size()) > limits_.output_bytes) {
    fail(fmt::format("the prompt exceeds {} bytes", limits_.output_bytes), Errc::no_capacity);
    return;
  }
  output_.append(text);
}

void TemplateInterpreter::write(const Value& value) {
  if (value.is_text()) {
    if (charge_bytes(static_cast<int64_t>(value.text->size()))) write(*value.text);
  } else if (!value.is_undefined()) {
    write(to_text(value));
  }
}

TemplateInterpreter::Flow TemplateInterpreter::execute(const std::vector<TemplateNodePtr>& body) {
  for (const TemplateNodePtr& node : body) {
    if (failed()) return Flow::normal;
    if (const Flow flow = execute(*node); flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

TemplateInterpreter::Flow TemplateInterpreter::execute(const Node& node) {
  if (!charge(1)) return Flow::normal;
  if (depth_ >= limits_.depth) {
    fail(fmt::format("nested more than {} deep", limits_.depth), Errc::no_capacity);
    return Flow::normal;
  }
  ++depth_;
  line_ = node.line;
  Flow flow = Flow::normal;
  switch (node.kind) {
    case Kind::data:
      if (charge_bytes(static_cast<int64_t>(node.name.size())))
        write(TemplateText(node.name, TextOwner::template_owned));
      break;
    case Kind::output:
      write(evaluate(*node.kids[0]));
      break;
    case Kind::for_loop:
      flow = execute_for(node);
      break;
    case Kind::if_chain:
      flow = execute_if(node);
      break;
    case Kind::set:
      assign(*node.kids[0], evaluate(*node.kids[1]));
      break;
    case Kind::set_block:
      execute_set(node);
      break;
    case Kind::macro:
      define_macro(node);
      break;
    case Kind::call_block:
      call_block(node);
      break;
    case Kind::filter_block: {
      Value before = std::exchange(captured_, make(capture(node.body)));
      write(evaluate(*node.kids[0]));
      captured_ = std::move(before);
      break;
    }
    case Kind::with:
      execute_with(node);
      break;
    case Kind::group:
      flow = execute(node.body);
      break;
    case Kind::loop_break:
      flow = Flow::loop_break;
      break;
    case Kind::loop_continue:
      flow = Flow::loop_continue;
      break;
    default:
      fail("an expression stands where a statement is expected");
      break;
  }
  --depth_;
  return flow;
}

TemplateInterpreter::Flow TemplateInterpreter::execute_if(const Node& node) {
  for (size_t i = 0; i < node.kids.size(); ++i) {
    const bool taken = truthy(evaluate(*node.kids[i]));
    if (failed()) return Flow::normal;
    if (taken) return execute(node.branches[i]);
  }
  return node.branches.size() > node.kids.size() ? execute(node.branches.back()) : Flow::normal;
}

// Items that pass the loop's "if"; the condition sees the loop variable alone.
static bool keep_all(const TemplateNode& node) { return node.kids[2] == nullptr; }

TemplateInterpreter::Flow TemplateInterpreter::execute_for(const Node& node) {
  const Value iterable = evaluate(*node.kids[1]);
  if (failed()) return Flow::normal;
  std::optional<std::vector<Value>> items = iterate(iterable);
  if (!items) return Flow::normal;
  if (!keep_all(node)) {
    std::vector<Value> kept;
    for (const Value& item : *items) {
      TemplateScope* outer = scope_;
      const int64_t captures = n_captures_;
      scope_ = push_scope(outer);
      assign(*node.kids[0], item);
      if (truthy(evaluate(*node.kids[2]))) kept.push_back(item);
      pop_scope(outer, captures);
      if (failed()) return Flow::normal;
    }
    items = std::move(kept);
  }
  if (!items->empty()) return execute_loop_body(node, *items);
  TemplateScope* outer = scope_;
  const int64_t captures = n_captures_;
  scope_ = push_scope(outer);
  const Flow flow = execute(node.alternate);
  pop_scope(outer, captures);
  return flow;
}

namespace {

TemplateValue loop_cycle(TemplateInterpreter& in, const TemplateValue& self, const TemplateArguments& arguments) {
  if (arguments.positional.empty()) return in.fail("loop.cycle needs values");
  const TemplateValue* index = in.find_key(*self.dict, "index0");
  return arguments.positional[static_cast<size_t>(index->integer) % arguments.positional.size()];
}

// True when the arguments differ from those of the call before.
TemplateValue loop_changed(TemplateInterpreter& in, const TemplateValue& self, const TemplateArguments& arguments) {
  TemplateValue now = in.make_list(arguments.positional, ValueKind::tuple);
  if (in.failed()) return {};
  const TemplateValue* before = in.find_key(*self.dict, "_changed");
  const bool changed = before == nullptr || !in.equal(*before, now);
  in.set_key(*self.dict, TemplateValue::own("_changed"), now);
  return TemplateValue::of(changed);
}

}  // namespace

TemplateInterpreter::Flow TemplateInterpreter::execute_loop_body(const Node& node,
                                                                 const std::vector<Value>& items) {
  const auto n = static_cast<int64_t>(items.size());
  Value loop = make_dict({}, ValueKind::name_space);
  if (failed()) return Flow::normal;
  TemplateDict& fields = *loop.dict;
  const auto put = [&](std::string_view name, Value value) {
    fields.items.emplace_back(Value::own(name), std::move(value));
  };
  // The order is that of the updates below.
  for (const std::string_view name :
       {"index", "index0", "revindex", "revindex0", "first", "last", "previtem", "nextitem"})
    put(name, {});
  put("length", Value::of(n));
  put("depth", Value::of(int64_t{1}));  // more only in recursive loops, which are refused
  put("depth0", Value::of(int64_t{0}));
  put("cycle", make_function("cycle", loop_cycle, loop));
  put("changed", make_function("changed", loop_changed, loop));
  for (int64_t i = 0; i < n && !failed(); ++i) {
    const auto at = static_cast<size_t>(i);
    const Value now[] = {Value::of(i + 1),
                         Value::of(i),
                         Value::of(n - i),
                         Value::of(n - i - 1),
                         Value::of(i == 0),
                         Value::of(i + 1 == n),
                         i > 0 ? items[at - 1] : Value::undefined("there is no previous item"),
                         i + 1 < n ? items[at + 1] : Value::undefined("there is no next item")};
    for (size_t k = 0; k < std::size(now); ++k) fields.items[k].second = now[k];
    if (!charge(2)) break;
    TemplateScope* outer = scope_;
    const int64_t captures = n_captures_;
    scope_ = push_scope(outer);
    set_variable("loop", loop);
    assign(*node.kids[0], items[at]);
    const Flow flow = execute(node.body);
    pop_scope(outer, captures);
    if (flow == Flow::loop_break) break;
  }
  return Flow::normal;
}

void TemplateInterpreter::assign(const Node& target, const Value& value) {
  if (failed()) return;
  if (target.kind == Kind::name) {
    set_variable(target.name, value);
    return;
  }
  if (target.kind == Kind::attribute) {
    const Value* object = find_variable(target.kids[0]->name);
    if (object == nullptr || object->kind != ValueKind::name_space) {
      fail(fmt::format("cannot set '{}': '{}' is no namespace", target.name, target.kids[0]->name));
      return;
    }
    if (charge_bytes(64)) set_key(*object->dict, Value::own(target.name), value);
    return;
  }
  const auto parts = iterate(value);
  if (!parts) return;
  if (parts->size() != target.kids.size()) {
    fail(fmt::format("cannot unpack {} values into {} names", parts->size(), target.kids.size()));
    return;
  }
  for (size_t i = 0; i < parts->size(); ++i) assign(*target.kids[i], (*parts)[i]);
}

TemplateText TemplateInterpreter::capture(const std::vector<TemplateNodePtr>& body) {
  TemplateText before = std::exchange(output_, {});
  TemplateScope* outer = scope_;
  const int64_t captures = n_captures_;
  scope_ = push_scope(outer);
  execute(body);
  pop_scope(outer, captures);
  return std::exchange(output_, std::move(before));
}

void TemplateInterpreter::execute_set(const Node& node) {
  Value value = make(capture(node.body));
  if (node.kids[1] != nullptr) {
    Value before = std::exchange(captured_, std::move(value));
    value = evaluate(*node.kids[1]);
    captured_ = std::move(before);
  }
  assign(*node.kids[0], value);
}

void TemplateInterpreter::execute_with(const Node& node) {
  TemplateScope* outer = scope_;
  const int64_t captures = n_captures_;
  std::vector<Value> values;  // all are evaluated outside
  for (size_t i = 1; i < node.kids.size(); i += 2) values.push_back(evaluate(*node.kids[i]));
  scope_ = push_scope(outer);
  for (size_t i = 0; i < values.size(); ++i) assign(*node.kids[2 * i], values[i]);
  execute(node.body);
  pop_scope(outer, captures);
}

void TemplateInterpreter::define_macro(const Node& node) {
  if (!charge_bytes(static_cast<int64_t>(sizeof(TemplateCallable)))) return;
  ++n_captures_;
  callables_.push_back({node.name, nullptr, {}, &node, scope_});
  Value macro = Value::of_kind(ValueKind::callable);
  macro.callable = &callables_.back();
  set_variable(node.name, macro);
}

// {% call f(x) %}body{% endcall %}: f can call caller(), which renders the body.
void TemplateInterpreter::call_block(const Node& node) {
  if (!charge_bytes(static_cast<int64_t>(sizeof(TemplateCallable)))) return;
  ++n_captures_;
  callables_.push_back({"caller", nullptr, {}, &node, scope_});
  Value caller = Value::of_kind(ValueKind::callable);
  caller.callable = &callables_.back();
  const Value callee = evaluate(*node.kids[0]->kids[0]);
  Arguments arguments = evaluate_arguments(*node.kids[0]);
  arguments.named.emplace_back("caller", caller);
  if (!failed()) write(call(callee, arguments));
}

TemplateValue TemplateInterpreter::call_macro(const TemplateCallable& macro, const Arguments& arguments) {
  const Node& node = *macro.macro;
  const std::vector<TemplateNodePtr>& defaults = node.kind == Kind::macro ? node.kids : node.alternate;
  if (arguments.positional.size() > node.names.size())
    return fail(
        fmt::format("'{}' takes {} arguments, got {}", macro.name, node.names.size(), arguments.positional.size()));
  for (const auto& [name, value] : arguments.named) {
    bool known = name == "caller";
    for (const std::string& parameter : node.names) known = known || parameter == name;
    if (!known) return fail(fmt::format("'{}' has no parameter '{}'", macro.name, name.substr(0, 40)));
  }
  TemplateScope* outer = scope_;
  const int64_t captures = n_captures_;
  scope_ = push_scope(macro.scope);
  const size_t first_default = node.names.size() - defaults.size();
  for (size_t i = 0; i < node.names.size(); ++i) {
    if (const Value* given = template_argument(arguments, i, node.names[i]))
      set_variable(node.names[i], *given);
    else if (i >= first_default)
      set_variable(node.names[i], evaluate(*defaults[i - first_default]));
    else
      set_variable(node.names[i], Value::undefined(node.names[i]));
  }
  for (const auto& [name, value] : arguments.named)
    if (name == "caller") set_variable("caller", value);
  TemplateText before = std::exchange(output_, {});
  execute(node.body);
  TemplateText result = std::exchange(output_, std::move(before));
  pop_scope(outer, captures);
  return make(std::move(result));
}

const TemplateValue* template_argument(const TemplateArguments& arguments, size_t position, std::string_view name) {
  if (position < arguments.positional.size()) return &arguments.positional[position];
  for (const auto& [key, value] : arguments.named)
    if (key == name) return &value;
  return nullptr;
}

}  // namespace gannet
