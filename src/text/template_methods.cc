// Methods that values of the template language have: those of Python's str, dict and list which change nothing.
#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/template_strings.h"

namespace gannet {
namespace {

using Value = TemplateValue;
using Kind = TemplateValue::Kind;
using In = TemplateInterpreter;
using Args = TemplateArguments;

struct Method {
  std::string_view name;
  TemplateCallable::Function function;
};

const Value* arg(const Args& args, size_t position, std::string_view name = {}) {
  return template_argument(args, position, name);
}

template <bool left, bool right>
Value strip(In& in, const Value& self, const Args& args) {
  const Value* chars = arg(args, 0, "chars");
  if (chars == nullptr || chars->is_none()) return in.make(strip_text(*self.text, nullptr, left, right));
  const TemplateText* text = text_argument(in, chars, "strip");
  return text == nullptr ? Value() : in.make(strip_text(*self.text, &text->bytes(), left, right));
}

// Splits at runs of white space; empty pieces are left out.
Value split_at_space(In& in, const TemplateText& text, int64_t limit) {
  const std::string& bytes = text.bytes();
  std::vector<Value> parts;
  size_t i = 0;
  while (i < bytes.size() && !in.failed()) {
    size_t n = 0;
    while (i < bytes.size() && is_python_space(code_point_at(bytes, i, n))) i += n;
    if (i >= bytes.size()) break;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(in.make(strip_text(text.sub(i, bytes.size()), nullptr, false, true)));
      break;
    }
    const size_t begin = i;
    while (i < bytes.size() && !is_python_space(code_point_at(bytes, i, n))) i += n;
    parts.push_back(in.make(text.sub(begin, i)));
  }
  return in.make_list(std::move(parts));
}

template <bool from_right>
Value split(In& in, const Value& self, const Args& args) {
  const Value* separator = arg(args, 0, "sep");
  const int64_t limit = integer_argument(in, arg(args, 1, "maxsplit"), -1, "split");
  if (in.failed()) return {};
  if (separator == nullptr || separator->is_none()) {
    if (from_right && limit >= 0) return in.fail("rsplit: a limit without separator is not supported");
    return split_at_space(in, *self.text, limit);
  }
  const TemplateText* text = text_argument(in, separator, "split");
  if (text == nullptr) return {};
  if (text->empty()) return in.fail("split: empty separator");
  std::vector<Value> parts;
  size_t begin = 0;
  for (const size_t at : find_all(in, self.bytes(), text->bytes(), limit, from_right)) {
    parts.push_back(in.make(self.text->sub(begin, at)));
    begin = at + text->size();
  }
  parts.push_back(in.make(self.text->sub(begin, self.text->size())));
  return in.make_list(std::move(parts));
}

template <bool from_right>
Value partition(In& in, const Value& self, const Args& args) {
  const TemplateText* separator = text_argument(in, arg(args, 0, "sep"), "partition");
  if (separator == nullptr) return {};
  if (separator->empty()) return in.fail("partition: empty separator");
  const auto found = find_all(in, self.bytes(), separator->bytes(), 1, from_right);
  const TemplateText& text = *self.text;
  if (found.empty())
    return in.make_list(from_right ? std::vector<Value>{Value::own(""), Value::own(""), self}
                                   : std::vector<Value>{self, Value::own(""), Value::own("")},
                        Kind::tuple);
  const size_t end = found[0] + separator->size();
  return in.make_list(
      {in.make(text.sub(0, found[0])), in.make(text.sub(found[0], end)), in.make(text.sub(end, text.size()))},
      Kind::tuple);
}

template <bool at_end>
Value starts_or_ends(In& in, const Value& self, const Args& args) {
  const Value* wanted = arg(args, 0);
  if (args.positional.size() > 1) return in.fail("startswith: positions are not supported");
  if (wanted == nullptr || (!wanted->is_text() && wanted->kind != Kind::tuple))
    return in.fail("startswith: expected a string or a tuple");
  const auto matches = [&](const Value& value) {
    const TemplateText* text = text_argument(in, &value, "startswith");
    return text != nullptr &&
           (at_end ? self.bytes().ends_with(text->bytes()) : self.bytes().starts_with(text->bytes()));
  };
  if (wanted->is_text()) return Value::of(matches(*wanted));
  bool any = false;
  for (const Value& value : wanted->list->items) any = any || matches(value);
  return Value::of(any);
}

Value replace(In& in, const Value& self, const Args& args) {
  const TemplateText* from = text_argument(in, arg(args, 0, "old"), "replace");
  const TemplateText* to = text_argument(in, arg(args, 1, "new"), "replace");
  const int64_t limit = integer_argument(in, arg(args, 2, "count"), -1, "replace");
  if (in.failed()) return {};
  return in.make(replace_text(in, *self.text, from->bytes(), *to, limit));
}

template <TemplateText (*map)(const TemplateText&)>
Value mapped(In& in, const Value& self, const Args&) {
  return in.charge(static_cast<int64_t>(self.text->size()) / 16) ? in.make(map(*self.text)) : Value();
}

Value title(In& in, const Value& self, const Args&) {
  return in.charge(static_cast<int64_t>(self.text->size()) / 16) ? in.make(title_text(*self.text, false)) : Value();
}

template <bool from_right, bool required>
Value find(In& in, const Value& self, const Args& args) {
  const TemplateText* needle = text_argument(in, arg(args, 0), "find");
  if (needle == nullptr) return {};
  if (needle->empty()) return Value::of(from_right ? count_code_points(self.bytes()) : int64_t{0});
  const auto found = find_all(in, self.bytes(), needle->bytes(), 1, from_right);
  if (found.empty() && required) return in.fail("index: substring not found");
  return Value::of(found.empty() ? int64_t{-1}
                                 : count_code_points(std::string_view(self.bytes()).substr(0, found[0])));
}

Value count(In& in, const Value& self, const Args& args) {
  const TemplateText* needle = text_argument(in, arg(args, 0), "count");
  if (needle == nullptr) return {};
  if (needle->empty()) return Value::of(count_code_points(self.bytes()) + 1);
  return Value::of(static_cast<int64_t>(find_all(in, self.bytes(), needle->bytes(), -1).size()));
}

Value join(In& in, const Value& self, const Args& args) {
  if (arg(args, 0) == nullptr) return in.fail("join: expected a list");
  const auto items = in.iterate(*arg(args, 0));
  TemplateText out;
  for (size_t i = 0; items && i < items->size(); ++i) {
    const TemplateText* text = text_argument(in, &(*items)[i], "join");
    if (text == nullptr || !in.charge_bytes(static_cast<int64_t>(text->size() + self.text->size()))) return {};
    if (i > 0) out.append(*self.text);
    out.append(*text);
  }
  return in.failed() ? Value() : in.make(std::move(out));
}

template <bool at_end>
Value remove_affix(In& in, const Value& self, const Args& args) {
  const TemplateText* affix = text_argument(in, arg(args, 0), "removeprefix");
  if (affix == nullptr) return {};
  const std::string& bytes = self.bytes();
  if (at_end)
    return bytes.ends_with(affix->bytes()) ? in.make(self.text->sub(0, bytes.size() - affix->size())) : self;
  return bytes.starts_with(affix->bytes()) ? in.make(self.text->sub(affix->size(), bytes.size())) : self;
}

// "{} and {0} and {name}": no format specifications.
Value format(In& in, const Value& self, const Args& args) {
  const std::string& bytes = self.bytes();
  TemplateText out;
  size_t next = 0, i = 0;
  while (i < bytes.size() && in.charge(1)) {
    const char c = bytes[i];
    if ((c == '{' || c == '}') && i + 1 < bytes.size() && bytes[i + 1] == c) {
      out.append_range(*self.text, i, i + 1);
      i += 2;
      continue;
    }
    if (c != '{') {
      if (c == '}') return in.fail("format: a single '}'");
      out.append_range(*self.text, i, i + 1);
      ++i;
      continue;
    }
    const size_t end = bytes.find('}', i);
    if (end == std::string::npos) return in.fail("format: '{' is not closed");
    const std::string key = bytes.substr(i + 1, end - i - 1);
    if (key.find_first_of(":!.[{") != std::string::npos || key.size() > 64)
      return in.fail("format: only {}, {0} and {name} are supported");
    const bool number =
        !key.empty() && key.size() < 6 && std::ranges::all_of(key, [](char d) { return d >= '0' && d <= '9'; });
    const size_t position = key.empty() ? next++ : number ? static_cast<size_t>(std::stoul(key)) : SIZE_MAX;
    const Value* value = arg(args, position, key);
    if (value == nullptr) return in.fail(fmt::format("format: no value for '{{{}}}'", key));
    out.append(in.to_text(*value));
    i = end + 1;
  }
  return in.make(std::move(out));
}

Value splitlines(In& in, const Value& self, const Args&) {
  if (!in.charge(static_cast<int64_t>(self.text->size()) / 8) ||
      !in.charge_bytes(100 * static_cast<int64_t>(self.text->size())))
    return {};
  std::vector<Value> lines;
  for (TemplateText& line : split_lines(*self.text)) lines.push_back(in.make(std::move(line)));
  return in.make_list(std::move(lines));
}

// All characters satisfy the test, and there is one.
template <bool (*test)(uint32_t)>
Value all_are(In& in, const Value& self, const Args&) {
  const std::string& bytes = self.bytes();
  if (!in.charge(static_cast<int64_t>(bytes.size()) / 16)) return {};
  for (size_t i = 0, n = 0; i < bytes.size(); i += n)
    if (!test(code_point_at(bytes, i, n))) return Value::of(false);
  return Value::of(!bytes.empty());
}
utf8proc_category_t category(uint32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
bool is_digit(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_alpha(uint32_t c) { return category(c) >= UTF8PROC_CATEGORY_LU && category(c) <= UTF8PROC_CATEGORY_LO; }
bool is_alnum(uint32_t c) { return is_digit(c) || is_alpha(c); }

// No character of the other case, and at least one of this.
template <bool upper>
Value is_case(In& in, const Value& self, const Args&) {
  bool any = false;
  for (size_t i = 0, n = 0; i < self.bytes().size() && in.charge(1); i += n) {
    const auto kind = category(code_point_at(self.bytes(), i, n));
    if (kind == (upper ? UTF8PROC_CATEGORY_LL : UTF8PROC_CATEGORY_LU) || kind == UTF8PROC_CATEGORY_LT)
      return Value::of(false);
    any = any || kind == (upper ? UTF8PROC_CATEGORY_LU : UTF8PROC_CATEGORY_LL);
  }
  return Value::of(any);
}

Value dict_items(In& in, const Value& self, const Args&) {
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict->items) {
    items.push_back(in.make_list({key, value}, Kind::tuple));
    if (in.failed()) return {};
  }
  return in.make_list(std::move(items));
}

Value dict_keys(In& in, const Value& self, const Args&) {
  const auto keys = in.iterate(self);
  return keys ? in.make_list(*keys) : Value();
}

Value dict_values(In& in, const Value& self, const Args&) {
  std::vector<Value> items;
  if (!in.charge(static_cast<int64_t>(self.dict->items.size()) / 8)) return {};
  for (const auto& [key, value] : self.dict->items) items.push_back(value);
  return in.make_list(std::move(items));
}

Value dict_get(In& in, const Value& self, const Args& args) {
  const Value* key = arg(args, 0);
  if (key == nullptr) return in.fail("get: expected a key");
  if (const Value* value = in.find_key(*self.dict, *key)) return *value;
  const Value* absent = arg(args, 1);
  return absent == nullptr ? Value::none() : *absent;
}

Value list_index(In& in, const Value& self, const Args& args) {
  if (arg(args, 0) == nullptr) return in.fail("index: expected a value");
  for (size_t i = 0; i < self.list->items.size() && !in.failed(); ++i)
    if (in.equal(self.list->items[i], *arg(args, 0))) return Value::of(static_cast<int64_t>(i));
  return in.fail("index: the value is not in the list");
}

Value list_count(In& in, const Value& self, const Args& args) {
  if (arg(args, 0) == nullptr) return in.fail("count: expected a value");
  int64_t n = 0;
  for (size_t i = 0; i < self.list->items.size() && !in.failed(); ++i)
    n += in.equal(self.list->items[i], *arg(args, 0));
  return Value::of(n);
}

constexpr std::array kTextMethods{
    Method{"strip", strip<true, true>},
    Method{"lstrip", strip<true, false>},
    Method{"rstrip", strip<false, true>},
    Method{"split", split<false>},
    Method{"rsplit", split<true>},
    Method{"splitlines", splitlines},
    Method{"partition", partition<false>},
    Method{"rpartition", partition<true>},
    Method{"startswith", starts_or_ends<false>},
    Method{"endswith", starts_or_ends<true>},
    Method{"replace", replace},
    Method{"upper", mapped<upper_text>},
    Method{"lower", mapped<lower_text>},
    Method{"capitalize", mapped<capitalize_text>},
    Method{"title", title},
    Method{"find", find<false, false>},
    Method{"rfind", find<true, false>},
    Method{"index", find<false, true>},
    Method{"count", count},
    Method{"join", join},
    Method{"removeprefix", remove_affix<false>},
    Method{"removesuffix", remove_affix<true>},
    Method{"format", format},
    Method{"isdigit", all_are<is_digit>},
    Method{"isalpha", all_are<is_alpha>},
    Method{"isalnum", all_are<is_alnum>},
    Method{"isspace", all_are<is_python_space>},
    Method{"isupper", is_case<true>},
    Method{"islower", is_case<false>},
};
constexpr std::array kDictMethods{Method{"items", dict_items}, Method{"keys", dict_keys},
                                  Method{"values", dict_values}, Method{"get", dict_get}};
constexpr std::array kListMethods{Method{"index", list_index}, Method{"count", list_count}};

template <size_t n>
TemplateCallable::Function in_table(const std::array<Method, n>& table, std::string_view name) {
  for (const Method& method : table)
    if (method.name == name) return method.function;
  return nullptr;
}

}  // namespace

TemplateCallable::Function find_template_method(const TemplateValue& self, std::string_view name) {
  switch (self.kind) {
    case Kind::text:
      return in_table(kTextMethods, name);
    case Kind::dict:
      return in_table(kDictMethods, name);
    case Kind::list:
    case Kind::tuple:
      return in_table(kListMethods, name);
    default:
      return nullptr;
  }
}

}  // namespace gannet
