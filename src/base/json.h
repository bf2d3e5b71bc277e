// JSON as an ordered tree. Keys keep the client's order and numbers their spelling, because tool schemas and
// arguments are rendered into prompts: a sorted key or a lost digit changes the prompt and the prefix cache.
//
// A Json is a value type: copying copies the tree. Not thread-safe while mutated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gannet {

class Json {
 public:
  enum class Kind : uint8_t { null, boolean, number, string, array, object };
  using Member = std::pair<std::string, Json>;

  Json() = default;
  Json(bool value) : kind_(Kind::boolean), boolean_(value) {}
  Json(int value) : Json(int64_t{value}) {}
  Json(int64_t value);
  Json(uint64_t value);
  Json(double value);  // must be finite; spelled by the shortest text that reads back equal
  Json(std::string value) : kind_(Kind::string), text_(std::move(value)) {}
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  static Json array();
  static Json object();
  static Json number_from_text(std::string lexeme);  // must be a JSON number

  // Parses one JSON document. Refuses, with the byte offset: anything RFC 8259 does not allow, invalid UTF-8, lone
  // surrogates, more than `max_depth` nested containers. A repeated key keeps its first place and its last value.
  static Result<Json> parse(std::string_view text, int max_depth = 128);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool is_bool() const { return kind_ == Kind::boolean; }
  bool is_number() const { return kind_ == Kind::number; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_object() const { return kind_ == Kind::object; }

  // The value, or nothing where the kind or the range does not fit. as_int takes 3 and 3.0 but not 3.5.
  std::optional<bool> as_bool() const;
  std::optional<int64_t> as_int() const;
  std::optional<double> as_double() const;  // finite
  const std::string* as_string() const;     // null unless a string
  std::string_view number_text() const;     // spelling of a number, empty otherwise

  const std::vector<Json>& items() const { return items_; }        // of an array; empty otherwise
  const std::vector<Member>& members() const { return members_; }  // of an object; empty otherwise
  std::vector<Json>& items() { return items_; }
  std::vector<Member>& members() { return members_; }

  // Member of an object by name; nullptr when absent or when this is no object.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  Json& set(std::string_view key, Json value);  // replaces or appends; returns the stored value
  Json& push(Json value);                       // appends to an array

  // Compact text, UTF-8 kept, only what must be escaped is.
  std::string dump() const;
  // As Python's json.dumps(x, ensure_ascii=False): ", " and ": ", numbers respelled as Python's int and float do.
  std::string dump_python() const;

  bool operator==(const Json&) const = default;

 private:
  Kind kind_ = Kind::null;
  bool boolean_ = false;
  std::string text_;  // string value, or the spelling of a number
  std::vector<Json> items_;
  std::vector<Member> members_;
};

// Appends `text` as a JSON string with quotes. Invalid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace gannet
