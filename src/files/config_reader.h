// Typed access to the fields of a config.json object. A field may go by several names; null counts as absent. Every
// failure names file, field and value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace gannet::files {

using Names = std::initializer_list<std::string_view>;  // the first is the one messages use when absent

class ConfigReader {
 public:
  // `object` must outlive the reader. `file` is for messages.
  ConfigReader(const Json& object, std::string_view file) : object_(&object), file_(file) {}

  bool has(Names names) const { return find(names) != nullptr; }
  const Json* find(Names names) const;  // null when absent or JSON null

  // The value within [low, high]; `fallback` when absent. Without a fallback absence is an error. Two names of the
  // same field with different values are refused.
  Result<int64_t> integer(Names names, std::optional<int64_t> fallback, int64_t low, int64_t high) const;
  Result<double> number(Names names, std::optional<double> fallback, double low, double high) const;
  Result<bool> boolean(Names names, bool fallback) const;
  Result<std::string> text(Names names, std::optional<std::string_view> fallback) const;
  Result<std::optional<std::vector<int64_t>>> integers(Names names, int64_t low,
                                                       int64_t high) const;  // nothing: absent

  // integer() into an int32_t.
  Status read(int32_t& out, Names names, std::optional<int64_t> fallback, int64_t low, int64_t high) const;

  // "file: field = value <why>", with code unsupported or bad_file.
  Error unsupported(std::string_view field, std::string_view why) const;
  Error broken(std::string_view field, std::string_view why) const;

 private:
  Result<const Json*> only(Names names) const;  // the value, null when absent, an error on conflict
  Error refuse(Errc code, std::string_view field, std::string_view why) const;

  const Json* object_;
  std::string file_;
};

}  // namespace gannet::files
