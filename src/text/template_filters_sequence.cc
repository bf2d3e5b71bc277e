// Filters of lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/template_filters.h"
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
bool flag(In& in, const Args& args, size_t position, std::string_view name, bool absent = false) {
  const Value* value = arg(args, position, name);
  return value == nullptr ? absent : in.truthy(*value);
}

// Sorting and comparing see strings without case unless case_sensitive is set, and an attribute where one is named.
Value sort_key(In& in, const Value& item, const Value* attribute, bool case_sensitive) {
  Value key = attribute == nullptr || attribute->is_none() ? item : in.get_path(item, *attribute);
  if (key.is_text() && !case_sensitive) key = in.make(lower_text(*key.text));
  return key;
}

// Stable merge sort by in.less(): a comparison that is no order (or fails) still ends, unlike with std::sort.
void sort_by_key(In& in, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  std::vector<std::pair<Value, Value>> other(keyed.size());
  for (size_t width = 1; width < keyed.size() && !in.failed(); width *= 2) {
    for (size_t begin = 0; begin < keyed.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, keyed.size()), end = std::min(begin + 2 * width, keyed.size());
      size_t a = begin, b = middle;
      for (size_t out = begin; out < end; ++out) {
        // the later half goes first only where it is strictly before
        const bool take_b = a == middle || (b < end && (reverse ? in.less(keyed[a].first, keyed[b].first)
                                                                : in.less(keyed[b].first, keyed[a].first)));
        other[out] = keyed[take_b ? b++ : a++];
      }
    }
    std::swap(keyed, other);
  }
}

Value sort(In& in, const Value& input, const Args& args) {
  const auto items = in.iterate(input);
  if (!items) return {};
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : *items)
    keyed.emplace_back(sort_key(in, item, arg(args, 2, "attribute"), flag(in, args, 1, "case_sensitive")), item);
  sort_by_key(in, keyed, flag(in, args, 0, "reverse"));
  std::vector<Value> sorted;
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return in.make_list(std::move(sorted));
}

Value dictsort(In& in, const Value& input, const Args& args) {
  if (input.kind != Kind::dict) return in.fail(fmt::format("dictsort: expected a dict, got {}", input.kind_name()));
  const Value* by = arg(args, 1, "by");
  const bool by_value = by != nullptr && by->is_text() && by->bytes() == "value";
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : input.dict->items)
    keyed.emplace_back(sort_key(in, by_value ? value : key, nullptr, flag(in, args, 0, "case_sensitive")),
                       in.make_list({key, value}, Kind::tuple));
  sort_by_key(in, keyed, flag(in, args, 2, "reverse"));
  std::vector<Value> sorted;
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return in.make_list(std::move(sorted));
}

template <bool largest>
Value extreme(In& in, const Value& input, const Args& args) {
  const auto items = in.iterate(input);
  if (!items) return {};
  Value best = Value::undefined("an empty sequence has no extreme"), best_key;
  for (size_t i = 0; i < items->size() && !in.failed(); ++i) {
    const Value key = sort_key(in, (*items)[i], arg(args, 1, "attribute"), flag(in, args, 0, "case_sensitive"));
    if (i > 0 && !(largest ? in.less(best_key, key) : in.less(key, best_key))) continue;
    best = (*items)[i];
    best_key = key;
  }
  return best;
}

Value first(In& in, const Value& input, const Args&) {
  if (input.is_text() || input.is_sequence()) return in.get_item(input, Value::of(int64_t{0}));
  const auto items = in.iterate(input);
  return !items || items->empty() ? Value::undefined("the first item of an empty sequence") : items->front();
}

Value last(In& in, const Value& input, const Args&) {
  if (input.is_text() || input.is_sequence()) return in.get_item(input, Value::of(int64_t{-1}));
  const auto items = in.iterate(input);
  return !items || items->empty() ? Value::undefined("the last item of an empty sequence") : items->back();
}

Value list(In& in, const Value& input, const Args&) {
  auto items = in.iterate(input);
  return items ? in.make_list(std::move(*items)) : Value();
}

Value reverse(In& in, const Value& input, const Args&) {
  auto items = in.iterate(input);
  if (!items) return {};
  std::ranges::reverse(*items);
  if (!input.is_text()) return in.make_list(std::move(*items));
  TemplateText joined;
  for (const Value& item : *items) joined.append(*item.text);
  return in.make(std::move(joined));
}

Value join(In& in, const Value& input, const Args& args) {
  const auto items = in.iterate(input);
  const Value *separator = arg(args, 0, "d"), *attribute = arg(args, 1, "attribute");
  if (!items) return {};
  const TemplateText between = separator == nullptr ? TemplateText() : in.to_text(*separator);
  TemplateText out;
  for (size_t i = 0; i < items->size() && !in.failed(); ++i) {
    const Value item =
        attribute == nullptr || attribute->is_none() ? (*items)[i] : in.get_path((*items)[i], *attribute);
    if (i > 0 && in.charge_bytes(static_cast<int64_t>(between.size()))) out.append(between);
    out.append(in.to_text(item));
  }
  return in.make(std::move(out));
}

Value sum(In& in, const Value& input, const Args& args) {
  const auto items = in.iterate(input);
  const Value *attribute = arg(args, 0, "attribute"), *start = arg(args, 1, "start");
  Value total = start == nullptr ? Value::of(int64_t{0}) : *start;
  for (size_t i = 0; items && i < items->size() && !in.failed(); ++i)
    total = in.binary(
        "+", total,
        attribute == nullptr || attribute->is_none() ? (*items)[i] : in.get_path((*items)[i], *attribute));
  return total;
}

Value unique(In& in, const Value& input, const Args& args) {
  const auto items = in.iterate(input);
  if (!items) return {};
  std::vector<Value> kept, keys;
  for (const Value& item : *items) {
    const Value key = sort_key(in, item, arg(args, 1, "attribute"), flag(in, args, 0, "case_sensitive"));
    bool known = false;
    for (size_t i = 0; i < keys.size() && !known && !in.failed(); ++i) known = in.equal(keys[i], key);
    if (in.failed()) return {};
    if (known) continue;
    kept.push_back(item);
    keys.push_back(key);
  }
  return in.make_list(std::move(kept));
}

// What map and select go over: nothing in anything that counts as false, as in Jinja2.
std::optional<std::vector<Value>> items_or_none(In& in, const Value& input) {
  if (!in.truthy(input)) return std::vector<Value>{};
  return in.iterate(input);
}

// map(attribute="a.b", default=x), or map("filter", arguments...)
Value map(In& in, const Value& input, const Args& args) {
  const auto items = items_or_none(in, input);
  if (!items) return {};
  const Value* attribute = arg(args, SIZE_MAX, "attribute");
  std::vector<Value> out;
  if (args.positional.empty() && attribute != nullptr) {
    const Value* absent = arg(args, SIZE_MAX, "default");
    for (const Value& item : *items) {
      out.push_back(in.get_path(item, *attribute, absent));
      if (in.failed()) return {};
    }
    return in.make_list(std::move(out));
  }
  if (args.positional.empty() || !args.positional[0].is_text())
    return in.fail("map: expected a filter's name or attribute=");
  Args rest = args;
  rest.positional.erase(rest.positional.begin());
  for (const Value& item : *items) {
    if (!in.charge(1)) return {};
    out.push_back(in.apply_filter(args.positional[0].bytes(), item, rest));
  }
  return in.make_list(std::move(out));
}

// select("test", ...), reject(...); with `by_attribute` the first argument names what is tested.
template <bool keep, bool by_attribute>
Value select(In& in, const Value& input, const Args& args) {
  const auto items = items_or_none(in, input);
  if (!items) return {};
  const size_t n_skipped = by_attribute ? 1 : 0;
  if (args.positional.size() < n_skipped) return in.fail("selectattr: expected the name of an attribute");
  const bool has_test = args.positional.size() > n_skipped;
  if (has_test && !args.positional[n_skipped].is_text()) return in.fail("select: expected the name of a test");
  Args rest;
  rest.named = args.named;
  for (size_t i = n_skipped + 1; i < args.positional.size(); ++i) rest.positional.push_back(args.positional[i]);
  std::vector<Value> out;
  for (const Value& item : *items) {
    if (!in.charge(1)) return {};
    const Value subject = by_attribute ? in.get_path(item, args.positional[0]) : item;
    const bool holds =
        has_test ? in.apply_test(args.positional[n_skipped].bytes(), subject, rest) : in.truthy(subject);
    if (in.failed()) return {};
    if (holds == keep) out.push_back(item);
  }
  return in.make_list(std::move(out));
}

Value items(In& in, const Value& input, const Args& args) {
  if (input.is_undefined()) return in.make_list({});
  if (input.kind != Kind::dict) return in.fail(fmt::format("items: expected a dict, got {}", input.kind_name()));
  return find_template_method(input, "items")(in, input, args);
}

Value attribute_of(In& in, const Value& input, const Args& args) {
  const TemplateText* name = text_argument(in, arg(args, 0, "name"), "attr");
  return name == nullptr ? Value() : in.get_attribute(input, name->bytes());
}

Value batch(In& in, const Value& input, const Args& args) {
  const auto items = in.iterate(input);
  const int64_t size = integer_argument(in, arg(args, 0, "linecount"), 0, "batch");
  const Value* fill = arg(args, 1, "fill_with");
  if (!items) return {};
  if (size < 1 || size > 1'000'000) return in.fail("batch: the size must be 1 to 1000000");
  std::vector<Value> out;
  for (size_t begin = 0; begin < items->size() && !in.failed(); begin += static_cast<size_t>(size)) {
    const size_t end = std::min(begin + static_cast<size_t>(size), items->size());
    std::vector<Value> row(items->begin() + static_cast<std::ptrdiff_t>(begin),
                           items->begin() + static_cast<std::ptrdiff_t>(end));
    if (fill != nullptr && !fill->is_none()) row.resize(static_cast<size_t>(size), *fill);
    out.push_back(in.make_list(std::move(row)));
  }
  return in.make_list(std::move(out));
}

constexpr std::array kFilters{
    TemplateFilter{"sort", sort},
    TemplateFilter{"dictsort", dictsort},
    TemplateFilter{"min", extreme<false>},
    TemplateFilter{"max", extreme<true>},
    TemplateFilter{"first", first},
    TemplateFilter{"last", last},
    TemplateFilter{"list", list},
    TemplateFilter{"reverse", reverse},
    TemplateFilter{"join", join},
    TemplateFilter{"sum", sum},
    TemplateFilter{"unique", unique},
    TemplateFilter{"map", map},
    TemplateFilter{"select", select<true, false>},
    TemplateFilter{"reject", select<false, false>},
    TemplateFilter{"selectattr", select<true, true>},
    TemplateFilter{"rejectattr", select<false, true>},
    TemplateFilter{"items", items},
    TemplateFilter{"attr", attribute_of},
    TemplateFilter{"batch", batch},
};

}  // namespace

std::span<const TemplateFilter> template_sequence_filters() { return kFilters; }

}  // namespace gannet
