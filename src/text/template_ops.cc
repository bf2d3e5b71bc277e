// Truth, equality, order, membership, iteration, attributes: what values of the template language can do.
#include <fmt/format.h>

#include <algorithm>

#include "text/template_interpreter.h"

namespace gannet {

using Kind = TemplateValue::Kind;

const std::string& TemplateValue::bytes() const {
  static const std::string kEmpty;
  return text == nullptr ? kEmpty : text->bytes();
}

const char* TemplateValue::kind_name() const {
  switch (kind) {
    case Kind::undefined:
      return "an undefined value";
    case Kind::none:
      return "none";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::real:
      return "a number";
    case Kind::text:
      return "a string";
    case Kind::list:
      return "a list";
    case Kind::tuple:
      return "a tuple";
    case Kind::dict:
      return "a dict";
    case Kind::name_space:
      return "a namespace";
    case Kind::callable:
      return "a function";
  }
  return "a value";
}

TemplateValue TemplateInterpreter::make(TemplateText text) {
  if (!charge_bytes(static_cast<int64_t>(text.size()) + 64)) return {};
  return Value::of(std::move(text));
}

TemplateValue TemplateInterpreter::make_list(std::vector<Value> items, Kind kind) {
  const auto n = static_cast<int64_t>(items.size());
  if (!charge(n / 8) || !charge_bytes(64 + n * static_cast<int64_t>(sizeof(Value)))) return {};
  lists_.push_back({std::move(items)});
  Value value = Value::of_kind(kind);
  value.list = &lists_.back();
  return value;
}

TemplateValue TemplateInterpreter::make_dict(std::vector<std::pair<Value, Value>> items, Kind kind) {
  const auto n = static_cast<int64_t>(items.size());
  if (!charge(n / 8) || !charge_bytes(64 + 2 * n * static_cast<int64_t>(sizeof(Value)))) return {};
  dicts_.push_back({std::move(items)});
  Value value = Value::of_kind(kind);
  value.dict = &dicts_.back();
  return value;
}

TemplateValue TemplateInterpreter::make_function(std::string_view name, TemplateCallable::Function function,
                                                 Value self) {
  if (!charge_bytes(static_cast<int64_t>(sizeof(TemplateCallable)))) return {};
  callables_.push_back({std::string(name), function, std::move(self), nullptr, nullptr});
  Value value = Value::of_kind(Kind::callable);
  value.callable = &callables_.back();
  return value;
}

TemplateValue TemplateInterpreter::from_json(const Json& json, TextOwner owner) {
  switch (json.kind()) {
    case Json::Kind::null:
      return Value::none();
    case Json::Kind::boolean:
      return Value::of(*json.as_bool());
    case Json::Kind::string:
      return make(TemplateText(*json.as_string(), owner));
    case Json::Kind::number: {
      const std::string_view lexeme = json.number_text();
      const bool whole = lexeme.find_first_of(".eE") == std::string_view::npos;
      if (whole && json.as_int()) return Value::of(*json.as_int());
      Value value = Value::of(json.as_double().value_or(0.0));
      if (whole) value.text = std::make_shared<TemplateText>(lexeme, TextOwner::template_owned);
      return value;
    }
    case Json::Kind::array: {
      std::vector<Value> items;
      for (const Json& item : json.items()) items.push_back(from_json(item, owner));
      return make_list(std::move(items));
    }
    case Json::Kind::object: {
      std::vector<std::pair<Value, Value>> items;
      for (const auto& [key, value] : json.members())
        items.emplace_back(make(TemplateText(key, owner)), from_json(value, owner));
      return make_dict(std::move(items));
    }
  }
  return {};
}

bool TemplateInterpreter::truthy(const Value& value) const {
  switch (value.kind) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.integer != 0;
    case Kind::real:
      return value.real != 0;
    case Kind::text:
      return !value.text->empty();
    case Kind::list:
    case Kind::tuple:
      return !value.list->items.empty();
    case Kind::dict:
      return !value.dict->items.empty();
    case Kind::name_space:
    case Kind::callable:
      return true;
  }
  return false;
}

bool TemplateInterpreter::equal(const Value& a, const Value& b) {
  if (!charge(1)) return false;
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) return a.integer == b.integer;
    return a.as_real() == b.as_real();
  }
  if (a.kind != b.kind) return false;
  if (depth_ >= limits_.depth) {
    fail("comparing values that nest too deep", Errc::no_capacity);
    return false;
  }
  ++depth_;
  bool same = true;
  switch (a.kind) {
    case Kind::text:
      same = charge(static_cast<int64_t>(a.text->size() / 64)) && a.bytes() == b.bytes();
      break;
    case Kind::list:
    case Kind::tuple:
      same = a.list->items.size() == b.list->items.size();
      for (size_t i = 0; same && i < a.list->items.size(); ++i) same = equal(a.list->items[i], b.list->items[i]);
      break;
    case Kind::dict:
      same = a.dict->items.size() == b.dict->items.size();
      for (size_t i = 0; same && i < a.dict->items.size(); ++i) {
        const Value* other = find_key(*b.dict, a.dict->items[i].first);
        same = other != nullptr && equal(a.dict->items[i].second, *other);
      }
      break;
    case Kind::name_space:
      same = a.dict == b.dict;
      break;
    case Kind::callable:
      same = a.callable->function == b.callable->function && a.callable->macro == b.callable->macro;
      break;
    default:
      break;  // none and undefined
  }
  --depth_;
  return same && !failed();
}

bool TemplateInterpreter::less(const Value& a, const Value& b) {
  if (!charge(1)) return false;
  if (a.is_integer() && b.is_integer()) return a.integer < b.integer;
  if (a.is_number() && b.is_number()) return a.as_real() < b.as_real();
  if (a.is_text() && b.is_text())  // UTF-8 orders as its code points do
    return charge(static_cast<int64_t>(a.text->size() / 64)) && a.bytes() < b.bytes();
  if (a.kind == b.kind && a.is_sequence() && depth_ < limits_.depth) {
    ++depth_;
    const auto &x = a.list->items, &y = b.list->items;
    size_t i = 0;
    while (i < x.size() && i < y.size() && !failed() && equal(x[i], y[i])) ++i;
    const bool result = i < y.size() && (i == x.size() || less(x[i], y[i]));
    --depth_;
    return result;
  }
  fail(fmt::format("{} and {} have no order", a.kind_name(), b.kind_name()));
  return false;
}

bool TemplateInterpreter::contains(const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::undefined:
      return false;
    case Kind::text: {
      if (!item.is_text()) break;
      const auto n = static_cast<int64_t>(container.text->size()), m = static_cast<int64_t>(item.text->size());
      // searching is n*m in the worst case
      if (!charge(n / 64 + n / 64 * m / 64)) return false;
      return container.bytes().find(item.bytes()) != std::string::npos;
    }
    case Kind::list:
    case Kind::tuple:
      for (size_t i = 0; i < container.list->items.size() && !failed(); ++i)
        if (equal(container.list->items[i], item)) return true;
      return false;
    case Kind::dict:
      return find_key(*container.dict, item) != nullptr;
    default:
      break;
  }
  fail(fmt::format("{} cannot be searched for {}", container.kind_name(), item.kind_name()));
  return false;
}

std::optional<int64_t> TemplateInterpreter::length(const Value& value) const {
  switch (value.kind) {
    case Kind::undefined:
      return 0;
    case Kind::text:
      return count_code_points(value.bytes());
    case Kind::list:
    case Kind::tuple:
      return static_cast<int64_t>(value.list->items.size());
    case Kind::dict:
      return static_cast<int64_t>(value.dict->items.size());
    default:
      return std::nullopt;
  }
}

std::optional<std::vector<TemplateValue>> TemplateInterpreter::iterate(const Value& value) {
  std::vector<Value> items;
  if (failed()) return std::nullopt;
  switch (value.kind) {
    case Kind::undefined:
      return items;
    case Kind::list:
    case Kind::tuple:
      if (!charge(static_cast<int64_t>(value.list->items.size()) / 8)) return std::nullopt;
      return value.list->items;
    case Kind::dict:
      if (!charge(static_cast<int64_t>(value.dict->items.size()) / 8)) return std::nullopt;
      for (const auto& [key, item] : value.dict->items) items.push_back(key);
      return items;
    case Kind::text: {
      const std::string& bytes = value.bytes();
      // one string a character: about a hundred bytes each
      const auto n = static_cast<int64_t>(bytes.size());
      if (!charge(n / 4) || !charge_bytes(100 * n)) return std::nullopt;
      for (size_t i = 0; i < bytes.size();) {
        size_t end = i + 1;
        while (end < bytes.size() && !starts_code_point(bytes[end])) ++end;
        items.push_back(Value::of(value.text->sub(i, end)));
        i = end;
      }
      return items;
    }
    default:
      break;
  }
  fail(fmt::format("{} cannot be iterated", value.kind_name()));
  return std::nullopt;
}

TemplateValue* TemplateInterpreter::find_key(TemplateDict& dict, const Value& key) {
  if (key.is_text()) return find_key(dict, std::string_view(key.bytes()));
  for (auto& [known, value] : dict.items)
    if (!known.is_text() && equal(known, key)) return &value;
  return nullptr;
}

TemplateValue* TemplateInterpreter::find_key(TemplateDict& dict, std::string_view key) {
  if (!charge(static_cast<int64_t>(dict.items.size() / 16))) return nullptr;
  for (auto& [known, value] : dict.items)
    if (known.is_text() && known.bytes() == key) return &value;
  return nullptr;
}

void TemplateInterpreter::set_key(TemplateDict& dict, const Value& key, Value value) {
  if (Value* known = find_key(dict, key))
    *known = std::move(value);
  else
    dict.items.emplace_back(key, std::move(value));
}

TemplateValue TemplateInterpreter::get_attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) return fail(fmt::format("'{}' is undefined", object.bytes().substr(0, 80)));
  if (object.kind == Kind::name_space || object.kind == Kind::dict) {
    if (object.kind == Kind::dict)
      if (const auto method = find_template_method(object, name)) return make_function(name, method, object);
    if (const Value* value = find_key(*object.dict, name)) return *value;
    return Value::undefined(name);
  }
  if (const auto method = find_template_method(object, name)) return make_function(name, method, object);
  return Value::undefined(name);
}

TemplateValue TemplateInterpreter::get_item(const Value& object, const Value& key) {
  if (object.is_undefined()) return fail(fmt::format("'{}' is undefined", object.bytes().substr(0, 80)));
  if (object.kind == Kind::dict) {
    if (const Value* value = find_key(*object.dict, key)) return *value;
  } else if ((object.is_sequence() || object.is_text()) && key.is_integer()) {
    if (object.is_text() && !charge(static_cast<int64_t>(object.text->size() / 64))) return {};
    const int64_t n = *length(object);
    if (key.integer >= n || key.integer < -n) return Value::undefined("an item that is not there");
    const auto at = static_cast<size_t>(key.integer < 0 ? key.integer + n : key.integer);
    if (!object.is_text()) return object.list->items[at];
    const size_t begin = code_point_offset(object.bytes(), static_cast<int64_t>(at));
    size_t end = begin + 1;
    while (end < object.text->size() && !starts_code_point(object.bytes()[end])) ++end;
    return make(object.text->sub(begin, end));
  }
  if (key.is_text()) return get_attribute(object, key.bytes());
  return Value::undefined("an item that is not there");
}

TemplateValue TemplateInterpreter::get_path(const Value& object, const Value& path, const Value* absent) {
  const auto step = [&](const Value& from, const Value& key) {
    Value found = get_item(from, key);
    return found.is_undefined() && absent != nullptr ? *absent : found;
  };
  if (!path.is_text()) return step(object, path);
  Value at = object;
  std::string_view rest = path.bytes();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool digits =
        !part.empty() && part.size() < 10 && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    at = step(at, digits ? Value::of(static_cast<int64_t>(std::stol(std::string(part)))) : Value::own(part));
    if (failed() || dot == std::string_view::npos) return at;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace gannet
