// Filters of strings and single values.
#include "text/template_filters.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "text/template_strings.h"

namespace gannet {
namespace {

using Value = TemplateValue;
using Kind = TemplateValue::Kind;
using In = TemplateInterpreter;
using Args = TemplateArguments;

const Value* arg(const Args& args, size_t position, std::string_view name) {
  return template_argument(args, position, name);
}

// Filters of strings take anything and see its text.
Value text_of(In& in, const Value& input) { return input.is_text() ? input : in.make(in.to_text(input)); }

template <TemplateText (*map)(const TemplateText&)>
Value mapped(In& in, const Value& input, const Args&) {
  const Value text = text_of(in, input);
  return in.charge(static_cast<int64_t>(text.bytes().size()) / 16) ? in.make(map(*text.text)) : Value();
}

Value title(In& in, const Value& input, const Args&) {
  const Value text = text_of(in, input);
  return in.charge(static_cast<int64_t>(text.bytes().size()) / 16) ? in.make(title_text(*text.text, true))
                                                                   : Value();
}

Value trim(In& in, const Value& input, const Args& args) {
  const Value text = text_of(in, input);
  if (in.failed()) return {};
  const Value* chars = arg(args, 0, "chars");
  if (chars == nullptr || chars->is_none()) return in.make(strip_text(*text.text, nullptr, true, true));
  const TemplateText* set = text_argument(in, chars, "trim");
  return set == nullptr ? Value() : in.make(strip_text(*text.text, &set->bytes(), true, true));
}

Value replace(In& in, const Value& input, const Args& args) {
  const Value text = text_of(in, input);
  const TemplateText* from = text_argument(in, arg(args, 0, "old"), "replace");
  const TemplateText* to = text_argument(in, arg(args, 1, "new"), "replace");
  const int64_t limit = integer_argument(in, arg(args, 2, "count"), -1, "replace");
  return in.failed() ? Value() : in.make(replace_text(in, *text.text, from->bytes(), *to, limit));
}

Value string(In& in, const Value& input, const Args&) { return text_of(in, input); }

Value same(In&, const Value& input, const Args&) { return input; }

// HTML escapes; unlike Jinja2, the result is an ordinary string that is not escaped again.
Value escape(In& in, const Value& input, const Args&) {
  Value text = text_of(in, input);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEscapes{
      {{"&", "&amp;"}, {">", "&gt;"}, {"<", "&lt;"}, {"'", "&#39;"}, {"\"", "&#34;"}}};
  for (const auto& [from, to] : kEscapes)
    if (!in.failed())
      text = in.make(replace_text(in, *text.text, from, TemplateText(to, TextOwner::template_owned), -1));
  return text;
}

Value default_value(In& in, const Value& input, const Args& args) {
  const Value* other = arg(args, 0, "default_value");
  const Value* boolean = arg(args, 1, "boolean");
  const bool absent = input.is_undefined() || (boolean != nullptr && in.truthy(*boolean) && !in.truthy(input));
  if (!absent) return input;
  return other == nullptr ? Value::own("") : *other;
}

Value absolute(In& in, const Value& input, const Args&) {
  if (input.kind == Kind::real) return Value::of(std::abs(input.real));
  if (!input.is_integer()) return in.fail(fmt::format("abs: expected a number, got {}", input.kind_name()));
  return input.integer == INT64_MIN ? in.fail("an integer beyond 64 bits") : Value::of(std::abs(input.integer));
}

// The number a text spells, as Python's float() reads it: blanks around, no trailing text.
bool parse_real(const std::string& bytes, double& out) {
  const TemplateText stripped = strip_text(TemplateText(bytes, TextOwner::template_owned), nullptr, true, true);
  const std::string& text = stripped.bytes();
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string::npos) return false;
  char* end = nullptr;
  out = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size();
}

Value to_integer(In& in, const Value& input, const Args& args) {
  const Value* absent = arg(args, 0, "default");
  const int64_t base = integer_argument(in, arg(args, 1, "base"), 10, "int");
  const Value otherwise = absent == nullptr ? Value::of(int64_t{0}) : *absent;
  if (base < 2 || base > 36) return in.fail("int: the base must be 2 to 36");
  if (input.is_integer()) return Value::of(input.integer);
  double real = 0;
  if (input.is_text()) {
    const TemplateText stripped = strip_text(*input.text, nullptr, true, true);
    std::string_view digits = stripped.bytes();
    if (digits.starts_with('+')) digits.remove_prefix(1);
    int64_t value = 0;
    const auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
    if (parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size() && !digits.empty())
      return Value::of(value);
    if (base != 10 || !parse_real(input.bytes(), real)) return otherwise;
  } else if (input.kind == Kind::real) {
    real = input.real;
  } else {
    return otherwise;
  }
  return std::abs(real) < 9e18 ? Value::of(static_cast<int64_t>(real)) : otherwise;
}

Value to_real(In&, const Value& input, const Args& args) {
  const Value* absent = arg(args, 0, "default");
  if (input.is_number()) return Value::of(input.as_real());
  double value = 0;
  if (input.is_text() && parse_real(input.bytes(), value)) return Value::of(value);
  return absent == nullptr ? Value::of(0.0) : *absent;
}

Value round(In& in, const Value& input, const Args& args) {
  const int64_t digits = integer_argument(in, arg(args, 0, "precision"), 0, "round");
  const Value* method = arg(args, 1, "method");
  const std::string how = method != nullptr && method->is_text() ? method->bytes() : "common";
  if (!input.is_number()) return in.fail(fmt::format("round: expected a number, got {}", input.kind_name()));
  if (digits < -15 || digits > 15) return in.fail("round: the precision must be -15 to 15");
  if (input.is_integer() && how == "common" && digits >= 0) return Value::of(input.integer);
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = input.as_real() * scale;
  // std::nearbyint rounds halves to even, as Python's round() does
  const double rounded = how == "ceil"    ? std::ceil(scaled)
                         : how == "floor" ? std::floor(scaled)
                                          : std::nearbyint(scaled);
  return Value::of(rounded / scale);
}

Value tojson(In& in, const Value& input, const Args& args) {
  TemplateJsonStyle style;
  // transformers' own order: ensure_ascii, indent, separators, sort_keys
  if (const Value* ascii = arg(args, 0, "ensure_ascii")) style.ensure_ascii = in.truthy(*ascii);
  if (const Value* indent = arg(args, 1, "indent"); indent != nullptr && !indent->is_none()) {
    style.indent = std::clamp<int64_t>(integer_argument(in, indent, -1, "tojson"), 0, 32);
    style.item_separator = ",";
  }
  if (const Value* separators = arg(args, 2, "separators"); separators != nullptr && !separators->is_none()) {
    const auto parts = in.iterate(*separators);
    if (!parts || parts->size() != 2 || !(*parts)[0].is_text() || !(*parts)[1].is_text())
      return in.fail("tojson: separators must be two strings");
    style.item_separator = (*parts)[0].bytes();
    style.key_separator = (*parts)[1].bytes();
  }
  if (const Value* sort = arg(args, 3, "sort_keys")) style.sort_keys = in.truthy(*sort);
  return in.failed() ? Value() : in.make(template_to_json(in, input, style));
}

// Lines after the first (with `first` all) are moved right; empty ones only with `blank`.
Value indent(In& in, const Value& input, const Args& args) {
  const Value text = text_of(in, input);
  const Value* width = arg(args, 0, "width");
  const Value *first = arg(args, 1, "first"), *blank = arg(args, 2, "blank");
  TemplateText margin;
  if (width != nullptr && width->is_text())
    margin = *width->text;
  else
    margin.append(
        std::string(static_cast<size_t>(std::clamp<int64_t>(integer_argument(in, width, 4, "indent"), 0, 200)),
                    ' '),
        TextOwner::template_owned);
  if (in.failed()) return {};
  const std::string& bytes = text.bytes();
  const std::vector<size_t> breaks = find_all(in, bytes, "\n", -1);
  if (!in.charge_bytes(static_cast<int64_t>(bytes.size() + (breaks.size() + 1) * margin.size()))) return {};
  TemplateText out;
  size_t begin = 0;
  for (size_t i = 0; i <= breaks.size(); ++i) {
    const size_t end = i < breaks.size() ? breaks[i] : bytes.size();
    const bool moved =
        i == 0 ? first != nullptr && in.truthy(*first) : end > begin || (blank != nullptr && in.truthy(*blank));
    if (moved) out.append(margin);
    out.append_range(*text.text, begin, std::min(end + 1, bytes.size()));
    begin = end + 1;
  }
  return in.make(std::move(out));
}

Value word_count(In& in, const Value& input, const Args&) {
  const Value text = text_of(in, input);
  int64_t n = 0;
  bool in_word = false;
  for (size_t i = 0, step = 0; i < text.bytes().size() && in.charge(1); i += step) {
    const bool space = is_python_space(code_point_at(text.bytes(), i, step));
    n += !space && !in_word;
    in_word = !space;
  }
  return Value::of(n);
}

Value length(In& in, const Value& input, const Args&) {
  if (!in.charge(static_cast<int64_t>(input.bytes().size()) / 64)) return {};
  const auto n = in.length(input);
  return n ? Value::of(*n) : in.fail(fmt::format("length: {} has none", input.kind_name()));
}

Value format(In& in, const Value& input, const Args& args) {
  return in.binary("%", text_of(in, input), in.make_list(args.positional, Kind::tuple));
}

constexpr std::array kFilters{
    TemplateFilter{"trim", trim},
    TemplateFilter{"upper", mapped<upper_text>},
    TemplateFilter{"lower", mapped<lower_text>},
    TemplateFilter{"capitalize", mapped<capitalize_text>},
    TemplateFilter{"title", title},
    TemplateFilter{"replace", replace},
    TemplateFilter{"string", string},
    TemplateFilter{"safe", same},
    TemplateFilter{"escape", escape},
    TemplateFilter{"e", escape},
    TemplateFilter{"default", default_value},
    TemplateFilter{"d", default_value},
    TemplateFilter{"abs", absolute},
    TemplateFilter{"int", to_integer},
    TemplateFilter{"float", to_real},
    TemplateFilter{"round", round},
    TemplateFilter{"tojson", tojson},
    TemplateFilter{"indent", indent},
    TemplateFilter{"wordcount", word_count},
    TemplateFilter{"length", length},
    TemplateFilter{"count", length},
    TemplateFilter{"format", format},
};

}  // namespace

std::span<const TemplateFilter> template_text_filters() { return kFilters; }

TemplateValue TemplateInterpreter::apply_filter(std::string_view name, const Value& input,
                                                const Arguments& arguments) {
  if (failed()) return {};
  for (const auto table : {template_text_filters(), template_sequence_filters()})
    for (const TemplateFilter& filter : table)
      if (filter.name == name) return filter.function(*this, input, arguments);
  return fail(fmt::format("filter '{}' is not supported", name.substr(0, 40)));
}

}  // namespace gannet
