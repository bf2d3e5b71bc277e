#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "text/template_interpreter.h"

namespace gannet {

using Kind = TemplateNode::Kind;
using ValueKind = TemplateValue::Kind;

TemplateValue TemplateInterpreter::evaluate(const Node& node) {
  if (!charge(1)) return {};
  if (depth_ >= limits_.depth)
    return fail(fmt::format("nested more than {} deep", limits_.depth), Errc::no_capacity);
  ++depth_;
  line_ = node.line;
  Value value = evaluate_inner(node);
  --depth_;
  if (failed()) return {};
  return value;
}

TemplateValue TemplateInterpreter::evaluate_inner(const Node& node) {
  switch (node.kind) {
    case Kind::integer:
      return Value::of(node.integer);
    case Kind::real:
      return Value::of(node.real);
    case Kind::text:
      return charge_bytes(static_cast<int64_t>(node.name.size())) ? Value::own(node.name) : Value();
    case Kind::boolean:
      return Value::of(node.flag);
    case Kind::none:
      return Value::none();
    case Kind::name:
      return evaluate_name(node);
    case Kind::attribute: {
      const Value object = evaluate(*node.kids[0]);
      return failed() ? Value() : get_attribute(object, node.name);
    }
    case Kind::subscript: {
      const Value object = evaluate(*node.kids[0]);
      const Value key = evaluate(*node.kids[1]);
      return failed() ? Value() : get_item(object, key);
    }
    case Kind::slice:
      return evaluate_slice(node);
    case Kind::call:
      return evaluate_call(node);
    case Kind::filter: {
      const Value input = evaluate(*node.kids[0]);
      const Arguments arguments = evaluate_arguments(node);
      return failed() ? Value() : apply_filter(node.name, input, arguments);
    }
    case Kind::test: {
      const Value input = evaluate(*node.kids[0]);
      const Arguments arguments = evaluate_arguments(node);
      return failed() ? Value() : Value::of(apply_test(node.name, input, arguments) != node.flag);
    }
    case Kind::captured:
      return captured_;
    case Kind::list:
      return evaluate_sequence(node, ValueKind::list);
    case Kind::tuple:
      return evaluate_sequence(node, ValueKind::tuple);
    case Kind::dict:
      return evaluate_dict(node);
    default:
      return evaluate_operator(node);
  }
}

TemplateValue TemplateInterpreter::evaluate_operator(const Node& node) {
  switch (node.kind) {
    case Kind::negate:
    case Kind::plus:
      return evaluate_sign(node);
    case Kind::logical_not:
      return Value::of(!truthy(evaluate(*node.kids[0])));
    case Kind::logical_and: {
      Value left = evaluate(*node.kids[0]);
      return truthy(left) ? evaluate(*node.kids[1]) : left;
    }
    case Kind::logical_or: {
      Value left = evaluate(*node.kids[0]);
      return truthy(left) ? left : evaluate(*node.kids[1]);
    }
    case Kind::binary: {
      const Value left = evaluate(*node.kids[0]);
      const Value right = evaluate(*node.kids[1]);
      return failed() ? Value() : binary(node.name, left, right);
    }
    case Kind::concat: {
      TemplateText joined;
      for (const TemplateNodePtr& kid : node.kids) {
        const Value part = evaluate(*kid);
        if (failed()) return {};
        joined.append(to_text(part));
      }
      return make(std::move(joined));
    }
    case Kind::compare:
      return evaluate_compare(node);
    case Kind::conditional:
      if (truthy(evaluate(*node.kids[0]))) return evaluate(*node.kids[1]);
      return node.kids[2] == nullptr ? Value::undefined("the condition is false and there is no else")
                                     : evaluate(*node.kids[2]);
    default:
      return fail("a statement stands where a value is expected");
  }
}

TemplateValue TemplateInterpreter::evaluate_name(const Node& node) {
  if (const Value* value = find_variable(node.name)) return *value;
  if (const auto function = find_template_global(node.name)) return make_function(node.name, function);
  return Value::undefined(node.name);
}

TemplateValue TemplateInterpreter::evaluate_sequence(const Node& node, ValueKind kind) {
  std::vector<Value> items;
  for (const TemplateNodePtr& kid : node.kids) items.push_back(evaluate(*kid));
  return make_list(std::move(items), kind);
}

TemplateValue TemplateInterpreter::evaluate_dict(const Node& node) {
  Value out = make_dict({});
  for (size_t i = 0; i + 1 < node.kids.size() && !failed(); i += 2) {
    const Value key = evaluate(*node.kids[i]);
    Value value = evaluate(*node.kids[i + 1]);
    if (key.kind == ValueKind::list || key.kind == ValueKind::dict)
      return fail(fmt::format("{} cannot be a key", key.kind_name()));
    if (charge_bytes(2 * sizeof(Value))) set_key(*out.dict, key, std::move(value));
  }
  return out;
}

TemplateValue TemplateInterpreter::evaluate_sign(const Node& node) {
  const Value value = evaluate(*node.kids[0]);
  if (failed()) return {};
  if (!value.is_number()) return fail(fmt::format("a sign before {}", value.kind_name()));
  if (node.kind == Kind::plus) return value.kind == ValueKind::boolean ? Value::of(value.integer) : value;
  if (value.kind == ValueKind::real) return Value::of(-value.real);
  if (value.integer == INT64_MIN) return fail("an integer beyond 64 bits");
  return Value::of(-value.integer);
}

// a < b < c holds when every neighbour pair does; later operands are evaluated only while it holds.
TemplateValue TemplateInterpreter::evaluate_compare(const Node& node) {
  Value left = evaluate(*node.kids[0]);
  for (size_t i = 0; i < node.names.size(); ++i) {
    Value right = evaluate(*node.kids[i + 1]);
    if (failed()) return {};
    const std::string& op = node.names[i];
    bool holds = false;
    if (op == "==")
      holds = equal(left, right);
    else if (op == "!=")
      holds = !equal(left, right);
    else if (op == "in")
      holds = contains(right, left);
    else if (op == "not in")
      holds = !contains(right, left);
    else if (op == "<")
      holds = less(left, right);
    else if (op == ">")
      holds = less(right, left);
    else if (op == "<=")
      holds = less(left, right) || equal(left, right);
    else
      holds = less(right, left) || equal(left, right);
    if (!holds) return Value::of(false);
    left = std::move(right);
  }
  return Value::of(true);
}

TemplateArguments TemplateInterpreter::evaluate_arguments(const Node& node) {
  Arguments arguments;
  const size_t n_positional = node.kids.size() - 1 - node.names.size();
  for (size_t i = 0; i < n_positional; ++i) arguments.positional.push_back(evaluate(*node.kids[1 + i]));
  for (size_t i = 0; i < node.names.size(); ++i)
    arguments.named.emplace_back(node.names[i], evaluate(*node.kids[1 + n_positional + i]));
  return arguments;
}

TemplateValue TemplateInterpreter::evaluate_call(const Node& node) {
  const Value callee = evaluate(*node.kids[0]);
  const Arguments arguments = evaluate_arguments(node);
  if (failed()) return {};
  line_ = node.line;
  if (callee.kind != ValueKind::callable && node.kids[0]->kind == Kind::attribute)
    return fail(
        fmt::format("{} has no method '{}'", evaluate(*node.kids[0]->kids[0]).kind_name(), node.kids[0]->name));
  return call(callee, arguments);
}

TemplateValue TemplateInterpreter::call(const Value& callee, const Arguments& arguments) {
  if (failed()) return {};
  if (callee.is_undefined()) return fail(fmt::format("'{}' is undefined", callee.bytes().substr(0, 80)));
  if (callee.kind != ValueKind::callable) return fail(fmt::format("{} cannot be called", callee.kind_name()));
  const TemplateCallable& target = *callee.callable;
  if (target.macro != nullptr) return call_macro(target, arguments);
  return target.function(*this, target.self, arguments);
}

// Python's rules: negative positions count from the end, those outside are cut, a negative step walks backwards.
TemplateValue TemplateInterpreter::evaluate_slice(const Node& node) {
  const Value object = evaluate(*node.kids[0]);
  std::optional<int64_t> part[3];
  for (size_t i = 0; i < 3; ++i) {
    if (node.kids[i + 1] == nullptr) continue;
    const Value value = evaluate(*node.kids[i + 1]);
    if (failed()) return {};
    if (value.is_none()) continue;
    if (!value.is_integer()) return fail("a slice needs integers");
    part[i] = value.integer;
  }
  if (failed()) return {};
  if (!object.is_text() && !object.is_sequence()) {
    return object.is_undefined() ? fail(fmt::format("'{}' is undefined", object.bytes().substr(0, 80)))
                                 : fail(fmt::format("{} cannot be sliced", object.kind_name()));
  }
  const int64_t n = *length(object);
  const int64_t step = part[2].value_or(1);
  if (step == 0) return fail("a slice with step 0");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto place = [&](std::optional<int64_t> at, int64_t absent) {
    if (!at) return absent;
    return std::clamp(*at < 0 ? (*at < -n ? low : *at + n) : *at, low, high);
  };
  const int64_t begin = place(part[0], step > 0 ? 0 : n - 1), end = place(part[1], step > 0 ? n : -1);
  if (!charge(n / 16 + 1)) return {};
  if (object.is_text() && step == 1) {
    if (begin >= end) return make({});
    const std::string& bytes = object.bytes();
    const size_t first = code_point_offset(bytes, begin);
    const size_t last = first + code_point_offset(std::string_view(bytes).substr(first), end - begin);
    return make(object.text->sub(first, last));
  }
  std::vector<Value> all = *iterate(object);
  std::vector<Value> items;
  // step is compared before it is added: adding an extreme step would overflow
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    items.push_back(all[static_cast<size_t>(i)]);
    if (step > 0 ? step >= end - i : step <= end - i) break;
    i += step;
  }
  if (!object.is_text()) return make_list(std::move(items), object.kind);
  TemplateText joined;
  for (const Value& item : items) joined.append(*item.text);
  return make(std::move(joined));
}

}  // namespace gannet
