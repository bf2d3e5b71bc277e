// Tests of the template language: "value is name".
#include <fmt/format.h>

#include <array>

#include "text/template_filters.h"
#include "text/template_strings.h"

namespace gannet {
namespace {

using Value = TemplateValue;
using Kind = TemplateValue::Kind;
using In = TemplateInterpreter;
using Args = TemplateArguments;

struct Test {
  std::string_view name;
  size_t n_arguments;
  bool (*holds)(In&, const Value& value, const Value* argument);
};

bool is_multiple(In& in, const Value& value, const Value& by) {
  if (!value.is_number() || !by.is_number()) {
    in.fail("divisibleby: expected numbers");
    return false;
  }
  const Value rest = in.binary("%", value, by);
  return !in.truthy(rest);
}

bool parity(In& in, const Value& value, bool odd) { return is_multiple(in, value, Value::of(int64_t{2})) != odd; }

// The same object; small values that are equal count as one.
bool same(In& in, const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.is_sequence()) return a.list == b.list;
  if (a.kind == Kind::dict || a.kind == Kind::name_space) return a.dict == b.dict;
  return in.equal(a, b);
}

bool has_case(In& in, const Value& value, bool upper) {
  if (!value.is_text() || !in.charge(static_cast<int64_t>(value.bytes().size()) / 16)) return false;
  const std::string other = (upper ? lower_text(*value.text) : upper_text(*value.text)).bytes();
  const std::string this_case = (upper ? upper_text(*value.text) : lower_text(*value.text)).bytes();
  return this_case == value.bytes() && other != value.bytes();
}

constexpr std::array kTests{
    Test{"defined", 0, [](In&, const Value& v, const Value*) { return !v.is_undefined(); }},
    Test{"undefined", 0, [](In&, const Value& v, const Value*) { return v.is_undefined(); }},
    Test{"none", 0, [](In&, const Value& v, const Value*) { return v.is_none(); }},
    Test{"boolean", 0, [](In&, const Value& v, const Value*) { return v.kind == Kind::boolean; }},
    Test{"true", 0, [](In&, const Value& v, const Value*) { return v.kind == Kind::boolean && v.integer != 0; }},
    Test{"false", 0, [](In&, const Value& v, const Value*) { return v.kind == Kind::boolean && v.integer == 0; }},
    Test{"integer", 0, [](In&, const Value& v, const Value*) { return v.kind == Kind::integer; }},
    Test{"float", 0, [](In&, const Value& v, const Value*) { return v.kind == Kind::real && v.text == nullptr; }},
    Test{"number", 0, [](In&, const Value& v, const Value*) { return v.is_number(); }},
    Test{"string", 0, [](In&, const Value& v, const Value*) { return v.is_text(); }},
    Test{"mapping", 0, [](In&, const Value& v, const Value*) { return v.kind == Kind::dict; }},
    Test{"sequence", 0,
         [](In&, const Value& v, const Value*) {
           return v.is_text() || v.is_sequence() || v.kind == Kind::dict || v.is_undefined();
         }},
    Test{"iterable", 0,
         [](In&, const Value& v, const Value*) {
           return v.is_text() || v.is_sequence() || v.kind == Kind::dict || v.is_undefined();
         }},
    Test{"callable", 0, [](In&, const Value& v, const Value*) { return v.kind == Kind::callable; }},
    Test{"lower", 0, [](In& in, const Value& v, const Value*) { return has_case(in, v, false); }},
    Test{"upper", 0, [](In& in, const Value& v, const Value*) { return has_case(in, v, true); }},
    Test{"odd", 0, [](In& in, const Value& v, const Value*) { return parity(in, v, true); }},
    Test{"even", 0, [](In& in, const Value& v, const Value*) { return parity(in, v, false); }},
    Test{"divisibleby", 1, [](In& in, const Value& v, const Value* a) { return is_multiple(in, v, *a); }},
    Test{"sameas", 1, [](In& in, const Value& v, const Value* a) { return same(in, v, *a); }},
    Test{"eq", 1, [](In& in, const Value& v, const Value* a) { return in.equal(v, *a); }},
    Test{"equalto", 1, [](In& in, const Value& v, const Value* a) { return in.equal(v, *a); }},
    Test{"==", 1, [](In& in, const Value& v, const Value* a) { return in.equal(v, *a); }},
    Test{"ne", 1, [](In& in, const Value& v, const Value* a) { return !in.equal(v, *a); }},
    Test{"!=", 1, [](In& in, const Value& v, const Value* a) { return !in.equal(v, *a); }},
    Test{"lt", 1, [](In& in, const Value& v, const Value* a) { return in.less(v, *a); }},
    Test{"lessthan", 1, [](In& in, const Value& v, const Value* a) { return in.less(v, *a); }},
    Test{"gt", 1, [](In& in, const Value& v, const Value* a) { return in.less(*a, v); }},
    Test{"greaterthan", 1, [](In& in, const Value& v, const Value* a) { return in.less(*a, v); }},
    Test{"le", 1, [](In& in, const Value& v, const Value* a) { return in.less(v, *a) || in.equal(v, *a); }},
    Test{"ge", 1, [](In& in, const Value& v, const Value* a) { return in.less(*a, v) || in.equal(v, *a); }},
    Test{"in", 1, [](In& in, const Value& v, const Value* a) { return in.contains(*a, v); }},
};

}  // namespace

bool TemplateInterpreter::apply_test(std::string_view name, const Value& input, const Arguments& arguments) {
  if (failed()) return false;
  for (const Test& test : kTests) {
    if (test.name != name) continue;
    if (arguments.positional.size() != test.n_arguments || !arguments.named.empty()) {
      fail(
          fmt::format("test '{}' takes {} arguments, got {}", name, test.n_arguments, arguments.positional.size()));
      return false;
    }
    return test.holds(*this, input, test.n_arguments == 0 ? nullptr : &arguments.positional[0]) && !failed();
  }
  fail(fmt::format("test '{}' is not supported", name.substr(0, 40)));
  return false;
}

}  // namespace gannet
