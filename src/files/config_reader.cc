#include "files/config_reader.h"

#include <fmt/format.h>

namespace gannet::files {
namespace {

constexpr size_t kMaxListed = 65536;  // elements of one array; hostile files must not cost memory

std::string shown(const Json* value) {
  if (value == nullptr) return "(absent)";
  std::string text = value->dump();
  if (text.size() > 120) text = text.substr(0, 117) + "...";
  return text;
}

}  // namespace

const Json* ConfigReader::find(Names names) const {
  for (const std::string_view name : names)
    if (const Json* value = object_->find(name); value != nullptr && !value->is_null()) return value;
  return nullptr;
}

Result<const Json*> ConfigReader::only(Names names) const {
  const Json* first = nullptr;
  std::string_view first_name;
  for (const std::string_view name : names) {
    const Json* value = object_->find(name);
    if (value == nullptr || value->is_null()) continue;
    if (first == nullptr) {
      first = value;
      first_name = name;
    } else if (!(*first == *value) &&
               !(first->is_number() && value->is_number() && first->as_double() == value->as_double())) {
      return Error{Errc::bad_file, fmt::format("{}: {} = {} contradicts {} = {}", file_, first_name, shown(first),
                                               name, shown(value))};
    }
  }
  return first;
}

Error ConfigReader::refuse(Errc code, std::string_view field, std::string_view why) const {
  return {code, fmt::format("{}: {} = {} {}", file_, field, shown(object_->find(field)), why)};
}
Error ConfigReader::unsupported(std::string_view field, std::string_view why) const {
  return refuse(Errc::unsupported, field, why);
}
Error ConfigReader::broken(std::string_view field, std::string_view why) const {
  return refuse(Errc::bad_file, field, why);
}

Result<int64_t> ConfigReader::integer(Names names, std::optional<int64_t> fallback, int64_t low,
                                      int64_t high) const {
  GANNET_ASSIGN(const Json* value, only(names));
  const std::string_view name = *names.begin();
  if (value == nullptr) {
    if (fallback) return *fallback;
    return Error{Errc::bad_file, fmt::format("{}: {} is missing", file_, name)};
  }
  const auto n = value->as_int();
  if (!n || *n < low || *n > high)
    return Error{Errc::bad_file,
                 fmt::format("{}: {} = {} is no integer from {} to {}", file_, name, shown(value), low, high)};
  return *n;
}

Result<double> ConfigReader::number(Names names, std::optional<double> fallback, double low, double high) const {
  GANNET_ASSIGN(const Json* value, only(names));
  const std::string_view name = *names.begin();
  if (value == nullptr) {
    if (fallback) return *fallback;
    return Error{Errc::bad_file, fmt::format("{}: {} is missing", file_, name)};
  }
  const auto x = value->as_double();
  if (!x || !(*x >= low) || !(*x <= high))
    return Error{Errc::bad_file,
                 fmt::format("{}: {} = {} is no number from {:g} to {:g}", file_, name, shown(value), low, high)};
  return *x;
}

Result<bool> ConfigReader::boolean(Names names, bool fallback) const {
  GANNET_ASSIGN(const Json* value, only(names));
  if (value == nullptr) return fallback;
  const auto b = value->as_bool();
  if (!b)
    return Error{Errc::bad_file,
                 fmt::format("{}: {} = {} is neither true nor false", file_, *names.begin(), shown(value))};
  return *b;
}

Result<std::string> ConfigReader::text(Names names, std::optional<std::string_view> fallback) const {
  GANNET_ASSIGN(const Json* value, only(names));
  if (value == nullptr) {
    if (fallback) return std::string(*fallback);
    return Error{Errc::bad_file, fmt::format("{}: {} is missing", file_, *names.begin())};
  }
  if (const std::string* text = value->as_string()) return *text;
  return Error{Errc::bad_file, fmt::format("{}: {} = {} is no string", file_, *names.begin(), shown(value))};
}

Result<std::optional<std::vector<int64_t>>> ConfigReader::integers(Names names, int64_t low, int64_t high) const {
  GANNET_ASSIGN(const Json* value, only(names));
  if (value == nullptr) return std::optional<std::vector<int64_t>>();
  const std::string_view name = *names.begin();
  if (!value->is_array() || value->items().size() > kMaxListed)
    return Error{Errc::bad_file, fmt::format("{}: {} = {} is no list of integers", file_, name, shown(value))};
  std::vector<int64_t> out;
  for (const Json& item : value->items()) {
    const auto n = item.as_int();
    if (!n || *n < low || *n > high)
      return Error{Errc::bad_file, fmt::format("{}: {} holds {}, which is no integer from {} to {}", file_, name,
                                               shown(&item), low, high)};
    out.push_back(*n);
  }
  return std::optional(std::move(out));
}

Status ConfigReader::read(int32_t& out, Names names, std::optional<int64_t> fallback, int64_t low,
                          int64_t high) const {
  GANNET_ASSIGN(const int64_t n,
                integer(names, fallback, low, std::min<int64_t>(high, std::numeric_limits<int32_t>::max())));
  out = static_cast<int32_t>(n);
  return ok();
}

}  // namespace gannet::files
