#include "text/normalizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/components.h"

namespace gannet {
namespace {

using Step = Normalizer::Step;

Result<Step> read_component(const Json& component) {
  const std::string& type = *component.find("type")->as_string();
  if (type == "NFC") return Step{.kind = Step::Kind::form, .form = NormalForm::nfc};
  if (type == "NFD") return Step{.kind = Step::Kind::form, .form = NormalForm::nfd};
  if (type == "NFKC") return Step{.kind = Step::Kind::form, .form = NormalForm::nfkc};
  if (type == "NFKD") return Step{.kind = Step::Kind::form, .form = NormalForm::nfkd};
  if (type == "Lowercase") return Step{.kind = Step::Kind::lower};
  if (type == "Prepend") {
    GANNET_ASSIGN(std::string content, component_text(component, "prepend", ""));
    return Step{.kind = Step::Kind::prepend, .content = std::move(content)};
  }
  if (type == "Replace") {
    GANNET_ASSIGN(const ComponentPattern pattern, component_pattern(component));
    if (pattern.is_regex)
      return component_error(component,
                             fmt::format("the regular expression '{}' is not implemented", pattern.text));
    GANNET_ASSIGN(std::string content, component_text(component, "content", ""));
    return Step{.kind = Step::Kind::replace, .pattern = pattern.text, .content = std::move(content)};
  }
  if (type == "Strip") {
    GANNET_ASSIGN(const bool left, component_flag(component, "strip_left", true));
    GANNET_ASSIGN(const bool right, component_flag(component, "strip_right", true));
    return Step{.kind = Step::Kind::strip, .left = left, .right = right};
  }
  return component_error(component, "this normalizer is not implemented");
}

// Collects output whose bytes are the client's as soon as one byte of their source is.
class Builder {
 public:
  explicit Builder(OwnedText& source) : source_(source) {}
  void add(std::string_view bytes, size_t from, size_t to) {
    out_.text += bytes;
    const bool client =
        std::string_view(source_.client).substr(from, to - from).find('\1') != std::string_view::npos;
    out_.client.append(bytes.size(), client ? '\1' : '\0');
  }
  void keep(size_t from, size_t to) {  // unchanged bytes, each with its own owner
    out_.text.append(source_.text, from, to - from);
    out_.client.append(source_.client, from, to - from);
  }
  void finish() { source_ = std::move(out_); }

 private:
  OwnedText& source_;
  OwnedText out_;
};

void apply_form(OwnedText& source, NormalForm form) {
  bool ascii = true;
  for (const char c : source.text) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  if (ascii) return;
  Builder builder(source);
  // Text of two owners is not composed across their border: a client's combining mark must not change what the
  // template wrote before it.
  for (size_t from = 0; from < source.text.size();) {
    const size_t to =
        std::min(source.client.find(source.client[from] == '\1' ? '\0' : '\1', from), source.text.size());
    builder.add(normalized(std::string_view(source.text).substr(from, to - from), form), from, to);
    from = to;
  }
  builder.finish();
}

void apply_lower(OwnedText& source) {
  Builder builder(source);
  const char* const begin = source.text.data();
  const char* const end = begin + source.text.size();
  std::string lower;
  for (const char* p = begin; p < end;) {
    const Char c = char_at(p, end);
    lower.clear();
    if (c.code_point == kIllFormed) {
      lower.assign(p, c.size);
    } else {
      append_lower(lower, c.code_point);
    }
    const auto from = static_cast<size_t>(p - begin);
    builder.add(lower, from, from + c.size);
    p += c.size;
  }
  builder.finish();
}

void apply_replace(OwnedText& source, const Step& step) {
  if (source.text.find(step.pattern) == std::string::npos) return;
  Builder builder(source);
  const std::string_view text = source.text;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(step.pattern, at), text.size());
    builder.keep(at, found);
    if (found < text.size()) builder.add(step.content, found, found + step.pattern.size());
    at = found + step.pattern.size();
  }
  builder.finish();
}

void apply_strip(OwnedText& source, const Step& step) {
  const char* begin = source.text.data();
  const char* end = begin + source.text.size();
  const char* const first = begin;
  while (step.left && begin < end && char_at(begin, end).is(kSpace)) begin += char_at(begin, end).size;
  while (step.right && begin < end && char_before(begin, end).is(kSpace)) end -= char_before(begin, end).size;
  const auto from = static_cast<size_t>(begin - first), size = static_cast<size_t>(end - begin);
  source.text = source.text.substr(from, size);
  source.client = source.client.substr(from, size);
}

}  // namespace

Result<Normalizer> Normalizer::from_components(const std::vector<Json>& components) {
  Normalizer out;
  for (const Json& component : components) {
    GANNET_ASSIGN(Step step, read_component(component));
    out.steps_.push_back(std::move(step));
  }
  return out;
}

Normalizer Normalizer::from_steps(std::vector<Step> steps) {
  Normalizer out;
  out.steps_ = std::move(steps);
  return out;
}

bool Normalizer::cuts_front() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const Step& step) { return step.kind == Step::Kind::strip && step.left; });
}

void Normalizer::apply(OwnedText& text) const {
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::Kind::form:
        apply_form(text, step.form);
        break;
      case Step::Kind::lower:
        apply_lower(text);
        break;
      case Step::Kind::replace:
        apply_replace(text, step);
        break;
      case Step::Kind::strip:
        apply_strip(text, step);
        break;
      case Step::Kind::prepend:
        // What the tokenizer puts in front belongs to whoever wrote what follows: it must not finish a control
        // token.
        if (text.text.empty()) break;
        text.client.insert(0, step.content.size(), text.client.front());
        text.text.insert(0, step.content);
        break;
    }
  }
}

std::string Normalizer::apply(std::string_view text) const {
  OwnedText owned{std::string(text), std::string(text.size(), '\0')};
  apply(owned);
  return owned.text;
}

}  // namespace gannet
