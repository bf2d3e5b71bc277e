// Values as text: Python's str(), repr() and json.dumps().
#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template_interpreter.h"

namespace gannet {

using Kind = TemplateValue::Kind;

std::string python_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  // in exponent form Json takes it as a real number and respells it as Python does
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  return Json::number_from_text(std::string(buffer, end)).dump_python();
}

namespace {

// Printable in the sense of Python's repr(): not a control, format, surrogate, private, unassigned or separator
// character, except the space.
bool is_printable(uint32_t c) {
  if (c == ' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

// Appends what stands for the character at bytes [i, i + n): the bytes themselves or an escape, of the same owner.
void append_escaped(TemplateText& out, const TemplateText& text, size_t i, size_t n, std::string_view escape) {
  if (escape.empty())
    out.append_range(text, i, i + n);
  else
    out.append(escape, text.owner_at(i));
}

TemplateText repr_of_text(const TemplateText& text) {
  const std::string& bytes = text.bytes();
  const bool has_single = bytes.find('\'') != std::string::npos, has_double = bytes.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  TemplateText out(std::string_view(&quote, 1), TextOwner::template_owned);
  for (size_t i = 0, n = 0; i < bytes.size(); i += n) {
    const uint32_t c = code_point_at(bytes, i, n);
    std::string escape;
    if (c == static_cast<uint32_t>(quote))
      escape = fmt::format("\\{}", quote);
    else if (c == '\\')
      escape = "\\\\";
    else if (c == '\n')
      escape = "\\n";
    else if (c == '\r')
      escape = "\\r";
    else if (c == '\t')
      escape = "\\t";
    else if (!is_printable(c))
      escape = c < 0x100     ? fmt::format("\\x{:02x}", c)
               : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                             : fmt::format("\\U{:08x}", c);
    append_escaped(out, text, i, n, escape);
  }
  out.append(std::string_view(&quote, 1), TextOwner::template_owned);
  return out;
}

class JsonWriter {
 public:
  JsonWriter(TemplateInterpreter& in, const TemplateJsonStyle& style) : in_(in), style_(style) {}

  void write(const TemplateValue& value, int32_t level) {
    if (!in_.charge(1)) return;
    if (level > 100) {
      in_.fail("tojson: values nest more than 100 deep", Errc::no_capacity);
      return;
    }
    switch (value.kind) {
      case Kind::none:
        own("null");
        return;
      case Kind::boolean:
        own(value.integer != 0 ? "true" : "false");
        return;
      case Kind::integer:
        own(std::to_string(value.integer));
        return;
      case Kind::real:
        own(value.text != nullptr ? value.bytes() : json_real(value.real));
        return;
      case Kind::text:
        write_text(*value.text);
        return;
      case Kind::list:
      case Kind::tuple:
        write_list(value.list->items, level);
        return;
      case Kind::dict:
        write_dict(value.dict->items, level);
        return;
      default:
        in_.fail(fmt::format("tojson: {} cannot be shown as JSON", value.kind_name()));
        return;
    }
  }

  TemplateText take() { return std::move(out_); }

 private:
  void own(std::string_view text) {
    if (in_.charge_bytes(static_cast<int64_t>(text.size()))) out_.append(text, TextOwner::template_owned);
  }

  static std::string json_real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return python_real(value);
  }

  void line_break(int32_t level) {
    if (style_.indent >= 0) own("\n" + std::string(static_cast<size_t>(style_.indent * level), ' '));
  }

  void write_text(const TemplateText& text) {
    if (!in_.charge_bytes(static_cast<int64_t>(text.size()))) return;
    const std::string& bytes = text.bytes();
    own("\"");
    size_t copied = 0;
    for (size_t i = 0, n = 0; i < bytes.size(); i += n) {
      const uint32_t c = code_point_at(bytes, i, n);
      const std::string escape = escaped(c);
      if (escape.empty()) continue;
      out_.append_range(text, copied, i);
      out_.append(escape, text.owner_at(i));
      copied = i + n;
    }
    out_.append_range(text, copied, bytes.size());
    own("\"");
  }

  std::string escaped(uint32_t c) const {
    switch (c) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\b':
        return "\\b";
      case '\f':
        return "\\f";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      default:
        break;
    }
    if (c < 0x20 || (style_.ensure_ascii && c > 0x7E && c < 0x10000)) return fmt::format("\\u{:04x}", c);
    if (style_.ensure_ascii && c >= 0x10000)
      return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
    return {};
  }

  void write_list(const std::vector<TemplateValue>& items, int32_t level) {
    if (items.empty()) return own("[]");
    own("[");
    for (size_t i = 0; i < items.size() && !in_.failed(); ++i) {
      if (i > 0) own(style_.item_separator);
      line_break(level + 1);
      write(items[i], level + 1);
    }
    line_break(level);
    own("]");
  }

  void write_dict(std::vector<std::pair<TemplateValue, TemplateValue>> items, int32_t level) {
    if (items.empty()) return own("{}");
    if (!in_.charge_bytes(64 * static_cast<int64_t>(items.size()))) return;
    if (style_.sort_keys)
      std::ranges::stable_sort(items,
                               [](const auto& a, const auto& b) { return a.first.bytes() < b.first.bytes(); });
    own("{");
    bool first = true;
    for (const auto& [key, value] : items) {
      if (in_.failed()) return;
      if (!first) own(style_.item_separator);
      first = false;
      line_break(level + 1);
      if (key.is_text())
        write_text(*key.text);
      else if (key.is_number() || key.is_none())
        own("\""), write(key, level + 1), own("\"");
      else
        in_.fail(fmt::format("tojson: {} cannot be a key", key.kind_name()));
      own(style_.key_separator);
      write(value, level + 1);
    }
    line_break(level);
    own("}");
  }

  TemplateInterpreter& in_;
  const TemplateJsonStyle& style_;
  TemplateText out_;
};

}  // namespace

TemplateText template_to_json(TemplateInterpreter& in, const TemplateValue& value, const TemplateJsonStyle& style) {
  JsonWriter writer(in, style);
  writer.write(value, 0);
  return writer.take();
}

TemplateText TemplateInterpreter::to_text(const Value& value) {
  if (value.is_text()) return charge_bytes(static_cast<int64_t>(value.text->size())) ? *value.text : TemplateText();
  return value.is_undefined() ? TemplateText() : to_repr(value);
}

TemplateText TemplateInterpreter::to_repr(const Value& value) {
  TemplateText out;
  const auto own = [&](std::string_view text) { out.append(text, TextOwner::template_owned); };
  if (!charge(1) || !charge_bytes(16)) return out;
  if (depth_ >= limits_.depth) return fail("printing values that nest too deep", Errc::no_capacity), out;
  ++depth_;
  switch (value.kind) {
    case Kind::undefined:
      own("Undefined");
      break;
    case Kind::none:
      own("None");
      break;
    case Kind::boolean:
      own(value.integer != 0 ? "True" : "False");
      break;
    case Kind::integer:
      own(std::to_string(value.integer));
      break;
    case Kind::real:
      own(value.text != nullptr ? value.bytes() : python_real(value.real));
      break;
    case Kind::text:
      if (charge(static_cast<int64_t>(value.text->size()) / 8) &&
          charge_bytes(10 * static_cast<int64_t>(value.text->size())))
        out = repr_of_text(*value.text);
      break;
    case Kind::list:
    case Kind::tuple: {
      const bool is_list = value.kind == Kind::list;
      own(is_list ? "[" : "(");
      for (size_t i = 0; i < value.list->items.size() && !failed(); ++i) {
        if (i > 0) own(", ");
        out.append(to_repr(value.list->items[i]));
        if (!charge_bytes(static_cast<int64_t>(out.size()) / 64)) break;
      }
      own(is_list ? "]" : value.list->items.size() == 1 ? ",)" : ")");
      break;
    }
    case Kind::dict:
      own("{");
      for (size_t i = 0; i < value.dict->items.size() && !failed(); ++i) {
        if (i > 0) own(", ");
        out.append(to_repr(value.dict->items[i].first));
        own(": ");
        out.append(to_repr(value.dict->items[i].second));
      }
      own("}");
      break;
    case Kind::name_space:
      own("<namespace>");
      break;
    case Kind::callable:
      own("<function>");
      break;
  }
  --depth_;
  return out;
}

}  // namespace gannet
