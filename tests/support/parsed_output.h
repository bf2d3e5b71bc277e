// What an output parser made of a whole answer, to compare and to print.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "text/output_parser.h"

namespace gannet::test {

struct Parsed {
  std::string reasoning, content;
  std::vector<std::string> calls;  // "name(arguments)", "name(arguments" where it was not ended
  OutputEnd end = OutputEnd::stop;
  bool operator==(const Parsed&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Parsed& p) {
  out << "reasoning '" << p.reasoning << "' content '" << p.content << "' end " << static_cast<int>(p.end);
  for (const std::string& call : p.calls) out << "\n  " << call;
  return out;
}

}  // namespace gannet::test
