#include "text/template.h"

#include <fmt/format.h>

#include "text/span_writer.h"
#include "text/template_ast.h"
#include "text/template_interpreter.h"

namespace gannet {
namespace {

// The client's values that only say what kind of thing an object is, checked by whoever built the messages.
void own_member(TemplateInterpreter& in, TemplateValue& object, std::string_view key) {
  if (object.kind != TemplateValue::Kind::dict) return;
  TemplateValue* value = in.find_key(*object.dict, key);
  if (value != nullptr && value->is_text()) *value = TemplateValue::own(value->bytes());
}

void own_kinds(TemplateInterpreter& in, TemplateValue& messages) {
  if (!messages.is_sequence()) return;
  for (TemplateValue& message : messages.list->items) {
    if (message.kind != TemplateValue::Kind::dict) continue;
    own_member(in, message, "role");
    for (const std::string_view key : {"content", "tool_calls"}) {
      TemplateValue* parts = in.find_key(*message.dict, key);
      if (parts == nullptr || !parts->is_sequence()) continue;
      for (TemplateValue& part : parts->list->items) own_member(in, part, "type");
    }
  }
}

}  // namespace

Template::Template(std::string source, std::string name, std::unique_ptr<TemplateNode> root)
    : source_(std::move(source)), name_(std::move(name)), root_(std::move(root)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source, std::string_view name) {
  auto root = parse_template(source);
  if (!root) return Error{root.error().code, fmt::format("{}: {}", name, root.error().message)};
  return Template(std::string(source), std::string(name), std::move(*root));
}

Result<std::vector<TextSpan>> Template::render(const std::vector<TemplateVariable>& variables, std::time_t now,
                                               const TemplateLimits& limits) const {
  TemplateInterpreter interpreter(limits, now);
  std::vector<std::pair<std::string, TemplateValue>> globals;
  for (const TemplateVariable& variable : variables) {
    globals.emplace_back(variable.name, interpreter.from_json(variable.value, variable.owner));
    if (variable.name == "messages") own_kinds(interpreter, globals.back().second);
  }
  auto text = interpreter.run(*root_, globals);
  if (!text) return Error{text.error().code, fmt::format("{}: {}", name_, text.error().message)};
  SpanWriter spans;
  size_t begin = 0;
  for (const TemplateText::Run& run : text->runs()) {
    spans.add(std::string_view(text->bytes()).substr(begin, run.end - begin), run.owner);
    begin = run.end;
  }
  return spans.take();
}

}  // namespace gannet
