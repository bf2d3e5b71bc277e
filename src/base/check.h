// Invariants of our own code. On in release builds; a failed check is a bug in Gannet, never in the caller's input.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace gannet {

// Prints place, expression and message to stderr, then aborts. Any thread.
[[noreturn]] void check_failed(std::string_view expression, const std::string& message,
                               std::source_location where = std::source_location::current());

namespace detail {
inline std::string check_message() { return {}; }
std::string check_message(std::string_view text);
std::string check_message(std::string_view format, long long a);
std::string check_message(std::string_view format, long long a, long long b);
std::string check_message(std::string_view format, long long a, long long b, long long c);
}  // namespace detail
}  // namespace gannet

// GANNET_CHECK(a <= b, "a {} b {}", a, b): up to three integers fill the braces. Formats through plain functions,
// so that it compiles in CUDA files, where fmt does not.
#define GANNET_CHECK(condition, ...)                                                    \
  do {                                                                                  \
    if (!(condition)) [[unlikely]]                                                      \
      ::gannet::check_failed(#condition, ::gannet::detail::check_message(__VA_ARGS__)); \
  } while (false)
