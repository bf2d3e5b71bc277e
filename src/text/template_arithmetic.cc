// The binary operators of the template language, with Python's meaning in 64-bit integers and doubles.
#include <fmt/format.h>

#include <cmath>

#include "text/template_interpreter.h"

namespace gannet {

using Kind = TemplateValue::Kind;

TemplateValue TemplateInterpreter::binary(std::string_view op, const Value& a, const Value& b) {
  for (const Value* operand : {&a, &b})
    if (operand->is_undefined()) return fail(fmt::format("'{}' is undefined", operand->bytes().substr(0, 80)));
  if (a.is_number() && b.is_number()) return arithmetic(op, a, b);
  if (op == "+") return add(a, b);
  if (op == "*" && b.is_integer() && (a.is_text() || a.is_sequence())) return repeat(a, b.integer);
  if (op == "*" && a.is_integer() && (b.is_text() || b.is_sequence())) return repeat(b, a.integer);
  if (op == "%" && a.is_text()) return format_percent(*a.text, b);
  return fail(fmt::format("'{}' between {} and {}", op, a.kind_name(), b.kind_name()));
}

TemplateValue TemplateInterpreter::add(const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) {
    if (!charge_bytes(static_cast<int64_t>(a.text->size() + b.text->size()))) return {};
    TemplateText joined = *a.text;
    joined.append(*b.text);
    return Value::of(std::move(joined));
  }
  if (a.is_sequence() && a.kind == b.kind) {
    if (!charge(static_cast<int64_t>(a.list->items.size() + b.list->items.size()) / 8)) return {};
    std::vector<Value> items = a.list->items;
    items.insert(items.end(), b.list->items.begin(), b.list->items.end());
    return make_list(std::move(items), a.kind);
  }
  return fail(fmt::format("'+' between {} and {}", a.kind_name(), b.kind_name()));
}

TemplateValue TemplateInterpreter::repeat(const Value& sequence, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const auto size = static_cast<int64_t>(sequence.is_text() ? sequence.text->size() : sequence.list->items.size());
  int64_t total = 0;
  if (__builtin_mul_overflow(size, times, &total)) total = INT64_MAX;
  if (!charge(total / 8) || !charge_bytes(sequence.is_text() ? total : 0)) return {};
  if (sequence.is_text()) {
    TemplateText out;
    if (size > 0)
      for (int64_t i = 0; i < times; ++i) out.append(*sequence.text);
    return Value::of(std::move(out));
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(total, static_cast<int64_t>(sizeof(Value)), &bytes)) bytes = INT64_MAX;
  if (bytes > limits_.new_bytes) return charge_bytes(bytes), Value();
  std::vector<Value> items;
  if (size > 0)
    for (int64_t i = 0; i < times; ++i)
      items.insert(items.end(), sequence.list->items.begin(), sequence.list->items.end());
  return make_list(std::move(items), sequence.kind);
}

TemplateValue TemplateInterpreter::arithmetic(std::string_view op, const Value& a, const Value& b) {
  if (op == "/") {
    if (b.as_real() == 0) return fail("division by zero");
    return Value::of(a.as_real() / b.as_real());
  }
  if (a.is_integer() && b.is_integer()) return integer_arithmetic(op, a.integer, b.integer);
  const double x = a.as_real(), y = b.as_real();
  if (op == "+") return Value::of(x + y);
  if (op == "-") return Value::of(x - y);
  if (op == "*") return Value::of(x * y);
  if (op == "**") {
    const double power = std::pow(x, y);
    return std::isfinite(power) ? Value::of(power) : fail("a power beyond the range of numbers");
  }
  if (y == 0) return fail("division by zero");
  double rest = std::fmod(x, y);  // of Python: the remainder has the sign of the divisor
  if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
  return Value::of(op == "%" ? rest : std::floor((x - rest) / y + 0.5));
}

TemplateValue TemplateInterpreter::integer_arithmetic(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(a, b, &result);
  else if (op == "-")
    overflow = __builtin_sub_overflow(a, b, &result);
  else if (op == "*")
    overflow = __builtin_mul_overflow(a, b, &result);
  else if (op == "**") {
    if (b < 0) return Value::of(std::pow(static_cast<double>(a), static_cast<double>(b)));
    result = 1;
    if (a == 0 || a == 1 || a == -1) return Value::of(b == 0 ? 1 : a == -1 && b % 2 == 0 ? int64_t{1} : a);
    for (int64_t i = 0; i < b && !overflow; ++i) overflow = __builtin_mul_overflow(result, a, &result);
  } else {
    if (b == 0) return fail("division by zero");
    if (a == INT64_MIN && b == -1) return op == "%" ? Value::of(int64_t{0}) : fail("an integer beyond 64 bits");
    const int64_t rest = a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;
    if (op == "%") return Value::of(rest);
    result = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  }
  return overflow ? fail("an integer beyond 64 bits") : Value::of(result);
}

// Python's "%s and %d" % values, for s, d, i, f and %% without widths; others are refused.
TemplateValue TemplateInterpreter::format_percent(const TemplateText& format, const Value& values) {
  const std::string& bytes = format.bytes();
  size_t next = 0;
  TemplateText out;
  size_t copied = 0;
  for (size_t i = bytes.find('%'); i != std::string::npos && !failed(); i = bytes.find('%', i)) {
    out.append_range(format, copied, i);
    const char type = i + 1 < bytes.size() ? bytes[i + 1] : '\0';
    copied = i += 2;
    if (type == '%') {
      out.append_range(format, i - 1, i);
      continue;
    }
    const bool many = values.kind == Kind::tuple;
    if (many ? next >= values.list->items.size() : next > 0) return fail("not enough values for the format");
    const Value& value = many ? values.list->items[next] : values;
    ++next;
    if (type == 's')
      out.append(to_text(value));
    else if ((type == 'd' || type == 'i') && value.is_integer())
      out.append(std::to_string(value.integer), TextOwner::template_owned);
    else if ((type == 'd' || type == 'i') && value.is_number() && std::abs(value.real) < 9e18)
      out.append(std::to_string(static_cast<int64_t>(value.real)), TextOwner::template_owned);
    else if (type == 'f' && value.is_number())
      out.append(fmt::format("{:f}", value.as_real()), TextOwner::template_owned);
    else
      return fail(fmt::format("format '%{}' of {} is not supported", type >= ' ' && type < 127 ? type : '?',
                              value.kind_name()));
    if (!charge(1)) return {};
  }
  if (values.kind == Kind::tuple && next < values.list->items.size())
    return fail("more values than the format takes");
  if (copied < bytes.size()) out.append_range(format, copied, bytes.size());
  return make(std::move(out));
}

}  // namespace gannet
