#include "grammar/constraint.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "grammar/impl.h"

namespace gannet::grammar {
namespace {

// XGrammar reports errors by exceptions, some of them with its source position in front: "[time] file:line: text".
std::string without_position(std::string_view what) {
  const size_t source = what.find(".cc:");
  const size_t text = source == std::string_view::npos ? source : what.find(": ", source);
  if (text != std::string_view::npos) what.remove_prefix(text + 2);
  while (!what.empty() && (what.back() == '\n' || what.back() == ' ')) what.remove_suffix(1);
  return std::string(what);
}

template <class F>
auto refusing_exceptions(std::string_view what, F&& f) -> Result<decltype(f())> {
  try {
    return f();
  } catch (const std::exception& error) {
    return Error{Errc::bad_request, fmt::format("{} is not valid: {}", what, without_position(error.what()))};
  }
}

}  // namespace

Result<Vocabulary> Vocabulary::make(int32_t size, const std::function<std::string_view(int32_t)>& bytes,
                                    std::span<const int32_t> end_ids) {
  std::vector<std::string> tokens(static_cast<size_t>(size));
  for (int32_t id = 0; id < size; ++id) tokens[static_cast<size_t>(id)] = bytes(id);
  for (const int32_t id : end_ids) {
    if (id < 0 || id >= size)
      return Error{Errc::bad_file,
                   fmt::format("the id {} that ends a text is outside the vocabulary of {}", id, size)};
    tokens[static_cast<size_t>(id)].clear();
  }
  const std::vector<int32_t> stops(end_ids.begin(), end_ids.end());
  return refusing_exceptions("the vocabulary", [&] {
    xgrammar::TokenizerInfo info(tokens, xgrammar::VocabType::RAW, size, stops);
    Vocabulary made;
    made.impl_ = std::make_shared<const Impl>(Impl{std::move(info), size});
    return made;
  });
}

int32_t Vocabulary::size() const { return impl_->size; }

Result<CompiledConstraint> CompiledConstraint::from_ebnf(const Vocabulary& vocabulary, const std::string& source) {
  return refusing_exceptions("the grammar", [&] {
    xgrammar::GrammarCompiler compiler(vocabulary.impl().info, /*max_threads=*/1, /*cache_enabled=*/false);
    CompiledConstraint made;
    made.impl_ = std::make_shared<const Impl>(Impl{compiler.CompileGrammar(source), vocabulary.size()});
    return made;
  });
}

Result<CompiledConstraint> CompiledConstraint::from_choices(const Vocabulary& vocabulary,
                                                            std::span<const std::string> choices) {
  if (choices.empty()) return Error{Errc::bad_request, "a choice needs at least one text"};
  std::string source = "root ::= ";
  for (size_t i = 0; i < choices.size(); ++i) {
    if (first_invalid_utf8(choices[i]))
      return Error{Errc::bad_request, fmt::format("text {} of the choice is not valid UTF-8", i)};
    source += (i == 0 ? "" : " | ") + ebnf_literal(choices[i]);
  }
  return from_ebnf(vocabulary, source + "\n");
}

size_t CompiledConstraint::memory_bytes() const { return impl_->grammar.MemorySizeBytes(); }

std::string ebnf_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace gannet::grammar
