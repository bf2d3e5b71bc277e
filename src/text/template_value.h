// Values of the template language. Internal to text/.
//
// Text is shared and immutable. Lists, dicts and macros live in the arena of one render and are freed with it, so
// that a namespace which contains itself leaks nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template_text.h"

namespace gannet {

struct TemplateNode;
struct TemplateList;
struct TemplateDict;
struct TemplateCallable;

struct TemplateValue {
  enum class Kind : uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    text,
    list,
    tuple,
    dict,
    name_space,
    callable
  };

  Kind kind = Kind::undefined;
  union {
    int64_t integer = 0;  // of boolean too
    double real;
    TemplateList* list;  // of list and tuple
    TemplateDict* dict;  // of dict and name_space
    TemplateCallable* callable;
  };
  // Of text. Of undefined: its name, for errors. Of real: the client's digits where a double cannot hold the
  // integer.
  std::shared_ptr<const TemplateText> text;

  static TemplateValue none() { return of_kind(Kind::none); }
  static TemplateValue undefined(std::string_view name) {
    TemplateValue value;
    value.text = std::make_shared<TemplateText>(name, TextOwner::template_owned);
    return value;
  }
  static TemplateValue of(bool flag) {
    TemplateValue value = of_kind(Kind::boolean);
    value.integer = flag;
    return value;
  }
  static TemplateValue of(int64_t number) {
    TemplateValue value = of_kind(Kind::integer);
    value.integer = number;
    return value;
  }
  static TemplateValue of(double number) {
    TemplateValue value = of_kind(Kind::real);
    value.real = number;
    return value;
  }
  static TemplateValue of(TemplateText text) {
    TemplateValue value = of_kind(Kind::text);
    value.text = std::make_shared<TemplateText>(std::move(text));
    return value;
  }
  static TemplateValue own(std::string_view text) { return of(TemplateText(text, TextOwner::template_owned)); }
  static TemplateValue of_kind(Kind kind) {
    TemplateValue value;
    value.kind = kind;
    return value;
  }

  bool is_undefined() const { return kind == Kind::undefined; }
  bool is_none() const { return kind == Kind::none; }
  bool is_text() const { return kind == Kind::text; }
  bool is_sequence() const { return kind == Kind::list || kind == Kind::tuple; }
  bool is_integer() const { return kind == Kind::integer || kind == Kind::boolean; }  // as in Python, True is 1
  bool is_number() const { return is_integer() || kind == Kind::real; }
  double as_real() const { return kind == Kind::real ? real : static_cast<double>(integer); }
  const std::string& bytes() const;  // of text
  const char* kind_name() const;     // "a string"
};

struct TemplateList {
  std::vector<TemplateValue> items;
};

struct TemplateDict {
  std::vector<std::pair<TemplateValue, TemplateValue>> items;  // in order of insertion
};

struct TemplateScope;
class TemplateInterpreter;

struct TemplateArguments {
  std::vector<TemplateValue> positional;
  std::vector<std::pair<std::string, TemplateValue>> named;
};

// A macro, or a function or method of the language with what it is bound to.
struct TemplateCallable {
  using Function = TemplateValue (*)(TemplateInterpreter&, const TemplateValue& self, const TemplateArguments&);
  std::string name;
  Function function = nullptr;  // null for a macro
  TemplateValue self;
  const TemplateNode* macro = nullptr;  // macro or call_block node
  TemplateScope* scope = nullptr;       // where the macro was defined
};

}  // namespace gannet
