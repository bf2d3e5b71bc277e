#include "base/json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <unordered_map>

#include "base/check.h"
#include "base/utf8.h"

namespace gannet {
namespace {

namespace od = simdjson::ondemand;

// RFC 8259 number: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
bool is_number(std::string_view s) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (i < s.size() && s[i] >= '0' && s[i] <= '9') ++i;
    return i > begin;
  };
  if (i < s.size() && s[i] == '-') ++i;
  const size_t begin = i;
  if (!digits() || (s[begin] == '0' && i > begin + 1)) return false;
  if (i < s.size() && s[i] == '.') {
    ++i;
    if (!digits()) return false;
  }
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    ++i;
    if (i < s.size() && (s[i] == '+' || s[i] == '-')) ++i;
    if (!digits()) return false;
  }
  return i == s.size();
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n' || s.back() == '\r' || s.back() == '\t'))
    s.remove_suffix(1);
  return s;
}

// Builds the tree from simdjson's on-demand cursor.
class Reader {
 public:
  explicit Reader(int max_depth) : depth_left_(max_depth) {}

  simdjson::error_code read(od::value value, Json& out) {
    od::json_type type;
    if (auto error = value.type().get(type)) return error;
    switch (type) {
      case od::json_type::object:
      case od::json_type::array: {
        // The on-demand parser does not count depth: without a limit of our own a deep document exhausts the stack.
        if (depth_left_ == 0) return simdjson::DEPTH_ERROR;
        --depth_left_;
        const auto error = type == od::json_type::object ? read_object(value, out) : read_array(value, out);
        ++depth_left_;
        return error;
      }
      case od::json_type::string: {
        std::string_view text;
        if (auto error = value.get_string().get(text)) return error;
        out = Json(text);
        return simdjson::SUCCESS;
      }
      default:
        return read_scalar(trimmed(value.raw_json_token()), out);
    }
  }

  static simdjson::error_code read_scalar(std::string_view token, Json& out) {
    if (token == "null")
      out = Json();
    else if (token == "true")
      out = Json(true);
    else if (token == "false")
      out = Json(false);
    else if (is_number(token))
      out = Json::number_from_text(std::string(token));
    else
      return simdjson::TAPE_ERROR;
    return simdjson::SUCCESS;
  }

 private:
  simdjson::error_code read_array(od::value value, Json& out) {
    out = Json::array();
    od::array array;
    if (auto error = value.get_array().get(array)) return error;
    for (auto item : array) {
      od::value element;
      if (auto error = item.get(element)) return error;
      if (auto error = read(element, out.items().emplace_back())) return error;
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code read_object(od::value value, Json& out) {
    out = Json::object();
    od::object object;
    if (auto error = value.get_object().get(object)) return error;
    std::unordered_map<std::string, size_t> place;  // a linear search would make large vocabularies quadratic
    for (auto field : object) {
      std::string_view key;
      od::value element;
      if (auto error = field.unescaped_key().get(key)) return error;
      const auto [it, fresh] = place.try_emplace(std::string(key), out.members().size());
      if (fresh) out.members().emplace_back(it->first, Json());
      if (auto error = field.value().get(element)) return error;
      if (auto error = read(element, out.members()[it->second].second)) return error;
    }
    return simdjson::SUCCESS;
  }

  int depth_left_;
};

std::string shortest(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

// Python's repr(float): shortest digits, exponent form when the decimal exponent is < -4 or >= 16, always '.0' or
// 'e'.
std::string python_float(double value) {
  if (!std::isfinite(value)) return value != value ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string text(buffer, end);
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  const bool negative = text[0] == '-';
  std::string digits;
  for (char c : text.substr(negative, e - negative))
    if (c != '.') digits += c;
  std::string out = negative ? "-" : "";
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (n > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02d}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - n), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

// A JSON number as Python prints it after reading it: integers keep their digits, reals go through double.
std::string python_number(std::string_view lexeme) {
  if (lexeme.find_first_of(".eE") == std::string_view::npos) return lexeme == "-0" ? "0" : std::string(lexeme);
  double value = 0;
  const auto result = std::from_chars(lexeme.data(), lexeme.data() + lexeme.size(), value);
  if (result.ec == std::errc::result_out_of_range) value = std::strtod(std::string(lexeme).c_str(), nullptr);
  return python_float(value);
}

void dump_to(std::string& out, const Json& json, bool python) {
  const std::string_view comma = python ? ", " : ",";
  switch (json.kind()) {
    case Json::Kind::null:
      out += "null";
      return;
    case Json::Kind::boolean:
      out += *json.as_bool() ? "true" : "false";
      return;
    case Json::Kind::number:
      out += python ? python_number(json.number_text()) : std::string(json.number_text());
      return;
    case Json::Kind::string:
      append_json_string(out, *json.as_string());
      return;
    case Json::Kind::array:
      out += '[';
      for (size_t i = 0; i < json.items().size(); ++i) {
        if (i > 0) out += comma;
        dump_to(out, json.items()[i], python);
      }
      out += ']';
      return;
    case Json::Kind::object:
      out += '{';
      for (size_t i = 0; i < json.members().size(); ++i) {
        if (i > 0) out += comma;
        append_json_string(out, json.members()[i].first);
        out += python ? ": " : ":";
        dump_to(out, json.members()[i].second, python);
      }
      out += '}';
      return;
  }
}

}  // namespace

Json::Json(int64_t value) : kind_(Kind::number), text_(std::to_string(value)) {}
Json::Json(uint64_t value) : kind_(Kind::number), text_(std::to_string(value)) {}
Json::Json(double value) : kind_(Kind::number), text_(shortest(value)) { GANNET_CHECK(std::isfinite(value)); }

Json Json::array() {
  Json json;
  json.kind_ = Kind::array;
  return json;
}

Json Json::object() {
  Json json;
  json.kind_ = Kind::object;
  return json;
}

Json Json::number_from_text(std::string lexeme) {
  GANNET_CHECK(gannet::is_number(lexeme), "not a JSON number");
  Json json;
  json.kind_ = Kind::number;
  json.text_ = std::move(lexeme);
  return json;
}

Result<Json> Json::parse(std::string_view text, int max_depth) {
  const simdjson::padded_string padded(text);
  od::parser parser;
  const auto failed = [&](simdjson::error_code code, const char* at) {
    const auto offset = at == nullptr ? size_t{0} : static_cast<size_t>(at - padded.data());
    return Error{Errc::bad_request, fmt::format("invalid JSON near byte {}: {}", std::min(offset, text.size()),
                                                simdjson::error_message(code))};
  };
  if (text.empty()) return Error{Errc::bad_request, "invalid JSON near byte 0: there is no document"};
  if (auto code = parser.allocate(std::max<size_t>(text.size(), 64), static_cast<size_t>(max_depth)))
    return failed(code, nullptr);
  od::document document;
  if (auto code = parser.iterate(padded).get(document)) return failed(code, nullptr);
  Json json;
  od::json_type type;
  if (auto code = document.type().get(type)) return failed(code, nullptr);
  simdjson::error_code code = simdjson::SUCCESS;
  if (type == od::json_type::object || type == od::json_type::array) {
    od::value root;
    code = document.get_value().get(root);
    if (!code) code = Reader(max_depth).read(root, json);
  } else if (type == od::json_type::string) {
    std::string_view value;
    code = document.get_string().get(value);
    if (!code) json = Json(value);
  } else {
    std::string_view token;
    code = document.raw_json_token().get(token);
    std::string_view rest = trimmed(text);
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t\n\r")));
    if (!code) code = trimmed(token) == rest ? Reader::read_scalar(rest, json) : simdjson::TRAILING_CONTENT;
    if (!code) return json;
  }
  const char* location = nullptr;
  const auto past_end = document.current_location().get(location);  // an error once nothing is left
  if (code) return failed(code, past_end ? padded.data() + text.size() : location);
  if (!past_end) return failed(simdjson::TRAILING_CONTENT, location);
  return json;
}

std::optional<bool> Json::as_bool() const {
  if (kind_ != Kind::boolean) return std::nullopt;
  return boolean_;
}

std::optional<int64_t> Json::as_int() const {
  if (kind_ != Kind::number) return std::nullopt;
  int64_t value = 0;
  const auto result = std::from_chars(text_.data(), text_.data() + text_.size(), value);
  if (result.ec == std::errc{} && result.ptr == text_.data() + text_.size()) return value;
  const auto real = as_double();
  if (!real || *real != std::floor(*real) || std::abs(*real) > 9007199254740992.0) return std::nullopt;
  return static_cast<int64_t>(*real);
}

std::optional<double> Json::as_double() const {
  if (kind_ != Kind::number) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(text_.data(), text_.data() + text_.size(), value);
  if (result.ec == std::errc::result_out_of_range) value = std::strtod(text_.c_str(), nullptr);  // underflow to 0
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

const std::string* Json::as_string() const { return kind_ == Kind::string ? &text_ : nullptr; }
std::string_view Json::number_text() const {
  return kind_ == Kind::number ? std::string_view(text_) : std::string_view();
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members_)
    if (name == key) return &value;
  return nullptr;
}

Json* Json::find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).find(key)); }

Json& Json::set(std::string_view key, Json value) {
  GANNET_CHECK(kind_ == Kind::object, "set() on a value that is no object");
  if (Json* old = find(key)) return *old = std::move(value);
  return members_.emplace_back(std::string(key), std::move(value)).second;
}

Json& Json::push(Json value) {
  GANNET_CHECK(kind_ == Kind::array, "push() on a value that is no array");
  return items_.emplace_back(std::move(value));
}

std::string Json::dump() const {
  std::string out;
  dump_to(out, *this, false);
  return out;
}

std::string Json::dump_python() const {
  std::string out;
  dump_to(out, *this, true);
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i++];
    } else if (c < 0x20) {
      constexpr std::string_view shorts = "btn\0fr";  // U+0008 .. U+000D; U+000B has no short form
      if (c >= 8 && c <= 13 && c != 11)
        out += {'\\', shorts[c - 8u]};
      else
        out += fmt::format("\\u{:04x}", c);
      ++i;
    } else {
      const Utf8Step step = utf8_step(text.data() + i, text.data() + text.size());
      if (step.kind == Utf8Step::Kind::character)
        out.append(text, i, step.size);
      else
        out += kUtf8Replacement;
      i += step.size;
    }
  }
  out += '"';
}

}  // namespace gannet
