#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace gannet {
namespace {

std::string fill(std::string_view format, std::initializer_list<long long> values) {
  std::string out;
  auto value = values.begin();
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '{' && i + 1 < format.size() && format[i + 1] == '}' && value != values.end()) {
      out += std::to_string(*value++);
      ++i;
    } else {
      out += format[i];
    }
  }
  return out;
}

}  // namespace

void check_failed(std::string_view expression, const std::string& message, std::source_location where) {
  std::fprintf(stderr, "%s:%u: this is a bug in Gannet: check failed: %.*s%s%s\n", where.file_name(),
               static_cast<unsigned>(where.line()), static_cast<int>(expression.size()), expression.data(),
               message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

namespace detail {
std::string check_message(std::string_view text) { return std::string(text); }
std::string check_message(std::string_view format, long long a) { return fill(format, {a}); }
std::string check_message(std::string_view format, long long a, long long b) { return fill(format, {a, b}); }
std::string check_message(std::string_view format, long long a, long long b, long long c) {
  return fill(format, {a, b, c});
}
}  // namespace detail
}  // namespace gannet
