// Operations on owned text that methods and filters of the template language share. Internal to text/.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/template_interpreter.h"

namespace gannet {

// Without the characters of `chars` at its ends; with white space where `chars` is null.
TemplateText strip_text(const TemplateText& text, const std::string* chars, bool left, bool right);
// Without case: utf8proc's one-to-one mapping (so "ß" stays, unlike Python's "SS").
TemplateText upper_text(const TemplateText& text);
TemplateText lower_text(const TemplateText& text);
TemplateText capitalize_text(const TemplateText& text);
// Words start after what is no letter or digit (Python's str.title) or after white space and brackets (Jinja's
// title).
TemplateText title_text(const TemplateText& text, bool jinja);
// Byte offsets where `needle` stands, left to right, not overlapping, `limit` at most (negative: all). Counts the
// work.
std::vector<size_t> find_all(TemplateInterpreter& in, std::string_view text, std::string_view needle, int64_t limit,
                             bool from_right = false);
TemplateText replace_text(TemplateInterpreter& in, const TemplateText& text, std::string_view from,
                          const TemplateText& to, int64_t limit);
std::vector<TemplateText> split_lines(const TemplateText& text);
// The text of an argument; null after a failure that names `function`.
const TemplateText* text_argument(TemplateInterpreter& in, const TemplateValue* value, std::string_view function);
int64_t integer_argument(TemplateInterpreter& in, const TemplateValue* value, int64_t absent,
                         std::string_view function);

}  // namespace gannet
