// Errors a caller can act on. Result<T> holds a T or an Error whose message is one sentence for the user.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace gannet {

enum class Errc {
  bad_file,     // a file breaks its format, or does not fit the model it is for
  bad_request,  // the user's input is not acceptable
  not_found,    // no such file, tensor, model, token
  unsupported,  // legal, but Gannet does not do it
  no_capacity,  // does not fit into memory, context or budget
  io,           // the operating system said no
  cancelled,
};

struct Error {
  Errc code;
  std::string message;
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::make_unexpected(std::move(error))) {}
};

using Status = Result<void>;
inline Status ok() { return {}; }

}  // namespace gannet

// GANNET_TRY(expr): leaves the function with the error of a Result<...> expression, or goes on.
// GANNET_ASSIGN(auto x, expr): the same, and binds the value.
#define GANNET_TRY(expression)                                                     \
  do {                                                                             \
    if (auto gannet_try_ = (expression); !gannet_try_) return gannet_try_.error(); \
  } while (false)
#define GANNET_CONCAT_(a, b) a##b
#define GANNET_CONCAT(a, b) GANNET_CONCAT_(a, b)
#define GANNET_ASSIGN_(temporary, declaration, expression) \
  auto temporary = (expression);                           \
  if (!temporary) return temporary.error();                \
  declaration = std::move(*temporary)
#define GANNET_ASSIGN(declaration, expression) \
  GANNET_ASSIGN_(GANNET_CONCAT(gannet_assign_, __LINE__), declaration, expression)
