#include "text/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/components.h"
#include "text/unicode.h"

namespace gannet {
namespace {

using Step = PreTokenizer::Step;
using Kind = Step::Kind;
using Behavior = Step::Behavior;

Result<Behavior> read_behavior(const Json& component) {
  GANNET_ASSIGN(const std::string name, component_text(component, "behavior", "Isolated"));
  if (name == "Isolated") return Behavior::isolated;
  if (name == "Removed") return Behavior::removed;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  return component_error(component, fmt::format("behavior '{}' is not implemented", name));
}

Result<Step> read_split(const Json& component) {
  GANNET_ASSIGN(const ComponentPattern pattern, component_pattern(component));
  GANNET_ASSIGN(const Behavior behavior, read_behavior(component));
  GANNET_ASSIGN(const bool invert, component_flag(component, "invert", false));
  Step step{.kind = Kind::literal, .behavior = behavior, .invert = invert};
  if (pattern.is_regex) {
    step.kind = Kind::pattern;
    step.match = find_pattern(pattern.text);
    if (step.match == nullptr)
      return component_error(component,
                             fmt::format("the regular expression '{}' is not implemented", pattern.text));
  } else {
    step.literal = pattern.text;
  }
  return step;
}

Result<Step> read_metaspace(const Json& component) {
  GANNET_ASSIGN(const std::string replacement, component_text(component, "replacement", "\xE2\x96\x81"));
  if (replacement.empty()) return component_error(component, "replacement is empty");
  GANNET_ASSIGN(const bool add_prefix, component_flag(component, "add_prefix_space", true));
  GANNET_ASSIGN(const std::string scheme,
                component_text(component, "prepend_scheme", add_prefix ? "always" : "never"));
  GANNET_ASSIGN(const bool cut, component_flag(component, "split", true));
  Step step{.kind = Kind::metaspace, .literal = replacement, .cut = cut};
  if (scheme == "always") {
    step.prepend = Step::Prepend::always;
  } else if (scheme == "first") {
    step.prepend = Step::Prepend::first;
  } else if (scheme != "never") {
    return component_error(component, fmt::format("prepend_scheme '{}' is not implemented", scheme));
  }
  return step;
}

Status read_component(const Json& component, std::vector<Step>& steps, bool& byte_level) {
  const std::string& type = *component.find("type")->as_string();
  if (byte_level) return component_error(component, "a step behind ByteLevel is not implemented");
  if (type == "Split") {
    GANNET_ASSIGN(Step step, read_split(component));
    steps.push_back(std::move(step));
  } else if (type == "Digits") {
    GANNET_ASSIGN(const bool single, component_flag(component, "individual_digits", false));
    steps.push_back({.kind = Kind::numbers, .behavior = single ? Behavior::isolated : Behavior::contiguous});
  } else if (type == "Punctuation") {
    GANNET_ASSIGN(const Behavior behavior, read_behavior(component));
    steps.push_back({.kind = Kind::punctuation, .behavior = behavior});
  } else if (type == "WhitespaceSplit") {
    steps.push_back({.kind = Kind::white_space, .behavior = Behavior::removed});
  } else if (type == "Whitespace") {
    steps.push_back(
        {.kind = Kind::pattern, .match = patterns::word_or_symbols, .behavior = Behavior::removed, .invert = true});
  } else if (type == "Metaspace") {
    GANNET_ASSIGN(Step step, read_metaspace(component));
    steps.push_back(std::move(step));
  } else if (type == "ByteLevel") {
    GANNET_ASSIGN(const bool prefix, component_flag(component, "add_prefix_space", true));
    GANNET_ASSIGN(const bool use_regex, component_flag(component, "use_regex", true));
    if (prefix) steps.push_back({.kind = Kind::prefix_space});
    if (use_regex) steps.push_back({.kind = Kind::pattern, .match = patterns::gpt2});
    byte_level = true;
  } else {
    return component_error(component, "this pre_tokenizer is not implemented");
  }
  return ok();
}

// The match of one step at p; 0 for none.
size_t match_at(const Step& step, const char* p, const char* end) {
  const auto one = [&](bool yes, const Char& c) { return yes ? size_t{c.size} : 0; };
  switch (step.kind) {
    case Kind::pattern:
      return step.match(p, end);
    case Kind::literal: {
      const std::string_view rest(p, static_cast<size_t>(end - p));
      return rest.starts_with(step.literal) ? step.literal.size() : 0;
    }
    default:
      break;
  }
  const Char c = char_at(p, end);
  if (step.kind == Kind::numbers) return one(c.is(kNumber), c);
  if (step.kind == Kind::punctuation) return one(c.is(kPunctuation | kAsciiPunctuation), c);
  return one(c.is(kSpace), c);
}

struct Part {
  const char* begin;
  const char* end;
  bool match;
};

// Joins matches with their neighbours as the behavior says; `parts` alternate in any way and cover the text.
void join(std::vector<Part>& parts, Behavior behavior) {
  std::vector<Part> joined;
  if (behavior == Behavior::merged_with_next) std::reverse(parts.begin(), parts.end());
  bool previous = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const bool together =
        behavior == Behavior::contiguous ? i > 0 && part.match == previous : part.match && !previous;
    if (together && !joined.empty()) {
      joined.back().begin = std::min(joined.back().begin, part.begin);
      joined.back().end = std::max(joined.back().end, part.end);
    } else {
      joined.push_back(part);
    }
    previous = part.match;
  }
  if (behavior == Behavior::merged_with_next) std::reverse(joined.begin(), joined.end());
  parts = std::move(joined);
}

}  // namespace

Result<PreTokenizer> PreTokenizer::from_components(const std::vector<Json>& components) {
  PreTokenizer out;
  for (const Json& component : components) GANNET_TRY(read_component(component, out.steps_, out.byte_level_));
  return out;
}

PreTokenizer PreTokenizer::from_steps(std::vector<Step> steps, bool byte_level) {
  PreTokenizer out;
  out.steps_ = std::move(steps);
  out.byte_level_ = byte_level;
  return out;
}

bool PreTokenizer::minds_start() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const Step& step) { return step.prepend == Step::Prepend::first; });
}

void PreTokenizer::run(size_t index, std::string_view text, bool at_start, PieceSink& sink) const {
  if (text.empty()) return;
  if (index == steps_.size()) return sink.piece(text);
  const Step& step = steps_[index];
  if (step.kind == Kind::prefix_space) {
    if (text.front() == ' ') return run(index + 1, text, at_start, sink);
    return run(index + 1, " " + std::string(text), at_start, sink);
  }
  if (step.kind == Kind::metaspace) {
    std::string replaced;
    replaced.reserve(text.size() + text.size() / 2);
    const std::string_view mark = step.literal;
    const bool prepend =
        step.prepend == Step::Prepend::always || (step.prepend == Step::Prepend::first && at_start);
    if (prepend && text.front() != ' ' && !text.starts_with(mark)) replaced += mark;
    for (const char c : text) {
      if (c == ' ') {
        replaced += mark;
      } else {
        replaced += c;
      }
    }
    if (!step.cut) return run(index + 1, replaced, at_start, sink);
    size_t begin = 0;
    while (begin < replaced.size()) {  // each mark begins a piece
      const size_t next = std::min(replaced.find(mark, begin + 1), replaced.size());
      run(index + 1, std::string_view(replaced).substr(begin, next - begin), at_start && begin == 0, sink);
      begin = next;
    }
    return;
  }
  cut(index, text, at_start, sink);
}

void PreTokenizer::cut(size_t index, std::string_view text, bool at_start, PieceSink& sink) const {
  const Step& step = steps_[index];
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const bool direct = step.behavior == Behavior::isolated || step.behavior == Behavior::removed;
  std::vector<Part> parts;
  const auto part = [&](const char* from, const char* to, bool match) {
    if (from == to) return;
    match = match != step.invert;
    if (!direct) return parts.push_back({from, to, match});
    if (match && step.behavior == Behavior::removed) return;
    run(index + 1, {from, static_cast<size_t>(to - from)}, at_start && from == begin, sink);
  };
  const char* gap = begin;
  for (const char* p = begin; p < end;) {
    const size_t n = match_at(step, p, end);
    if (n == 0) {
      p += char_at(p, end).size;
      continue;
    }
    part(gap, p, false);
    part(p, p + n, true);
    gap = p += n;
  }
  part(gap, end, false);
  if (direct) return;
  join(parts, step.behavior);
  for (const Part& p : parts)
    run(index + 1, {p.begin, static_cast<size_t>(p.end - p.begin)}, at_start && p.begin == begin, sink);
}

}  // namespace gannet
