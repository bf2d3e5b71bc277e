// Tables of filters. Internal to text/.
#pragma once

#include <span>
#include <string_view>

#include "text/template_interpreter.h"

namespace gannet {

// A filter is a function of its input and the arguments after it.
struct TemplateFilter {
  std::string_view name;
  TemplateCallable::Function function;
};

std::span<const TemplateFilter> template_text_filters();      // of strings and single values
std::span<const TemplateFilter> template_sequence_filters();  // of lists and dicts

}  // namespace gannet
