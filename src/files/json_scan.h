// A forward-only scanner for the JSON of model files: no tree, no allocation except for strings with escapes.
// Strict about what it is asked for; every method returns false at the first byte that does not fit and never reads
// past the end.
//
// The text must be valid UTF-8 (the caller checks once). Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gannet::files {

class JsonScan {
 public:
  explicit JsonScan(std::string_view text) : text_(text) {}

  size_t offset() const { return at_; }
  bool at_end();  // nothing but white space is left

  bool take(char c);  // skips white space, then exactly this byte
  bool peek(char c);  // the same without taking it
  // A string; `out` points into the text, or into `scratch` where the string has escapes.
  bool string(std::string_view& out, std::string& scratch);
  bool unsigned_integer(uint64_t& out);  // digits only; refuses a fraction, an exponent and overflow
  bool skip_value(int max_depth = 64);   // any value

 private:
  void skip_space();
  bool escape(std::string& scratch);
  bool hex4(uint32_t& out);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace gannet::files
