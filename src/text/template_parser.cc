#include "text/template_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gannet {

using Token = TemplateToken::Kind;
using Kind = TemplateNode::Kind;

const TemplateToken& TemplateParser::peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}
void TemplateParser::next() { at_ = std::min(at_ + 1, tokens_.size() - 1); }

bool TemplateParser::take_op(std::string_view op) {
  if (!at_op(op)) return false;
  next();
  return true;
}

bool TemplateParser::take_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

void TemplateParser::expect(Token kind, std::string_view what) {
  if (peek().kind == kind)
    next();
  else
    fail(fmt::format("expected {}", what));
}

void TemplateParser::expect_op(std::string_view op) {
  if (!take_op(op)) fail(fmt::format("expected '{}'", op));
}

std::string TemplateParser::expect_name() {
  if (peek().kind != Token::name) {
    fail("expected a name");
    return {};
  }
  std::string name = peek().value;
  next();
  return name;
}

TemplateNodePtr TemplateParser::fail(std::string_view what) {
  if (error_.empty()) {
    const TemplateToken& token = peek();
    const std::string found = token.kind == Token::end ? " at the end of the template"
                              : token.value.empty()    ? ""
                                                       : fmt::format(" at '{}'", token.value.substr(0, 40));
    error_ = fmt::format("line {}: {}{}", token.line, what, found);
  }
  at_ = tokens_.size() - 1;
  return node(Kind::none);
}

TemplateNodePtr TemplateParser::node(Kind kind) const {
  auto made = std::make_unique<TemplateNode>();
  made->kind = kind;
  made->line = peek().line;
  return made;
}

TemplateNodePtr TemplateParser::finished(NodePtr made) {
  int32_t below = 0;
  const auto look = [&](const std::vector<NodePtr>& nodes) {
    for (const NodePtr& child : nodes)
      if (child != nullptr) below = std::max(below, child->height);
  };
  look(made->kids);
  look(made->body);
  look(made->alternate);
  for (const auto& branch : made->branches) look(branch);
  made->height = below + 1;
  if (made->height > kTemplateMaxHeight) return fail(fmt::format("nested more than {} deep", kTemplateMaxHeight));
  return made;
}

TemplateNodePtr TemplateParser::parse_all() {
  NodePtr root = node(Kind::group);
  root->body = parse_statements({});
  if (error_.empty() && peek().kind != Token::end) fail("unexpected tag");
  return finished(std::move(root));
}

// Statements up to a block tag whose first word is in `ends`; that tag's opening is not consumed.
std::vector<TemplateNodePtr> TemplateParser::parse_statements(std::span<const std::string_view> ends) {
  std::vector<NodePtr> out;
  if (++depth_ > kTemplateMaxHeight) fail(fmt::format("nested more than {} deep", kTemplateMaxHeight));
  while (peek().kind != Token::end) {
    if (peek().kind == Token::open_block && peek(1).kind == Token::name &&
        std::ranges::find(ends, std::string_view(peek(1).value)) != ends.end())
      break;
    if (peek().kind == Token::data) {
      out.push_back(node(Kind::data));
      out.back()->name = peek().value;
      next();
    } else if (peek().kind == Token::open_output) {
      NodePtr output = node(Kind::output);
      next();
      output->kids.push_back(parse_tuple_or_expression());
      expect(Token::close_output, "'}}'");
      out.push_back(finished(std::move(output)));
    } else {
      expect(Token::open_block, "a tag");
      out.push_back(parse_block());
    }
  }
  --depth_;
  return out;
}

// After "{%".
TemplateNodePtr TemplateParser::parse_block() {
  const std::string word = expect_name();
  if (word == "for") return parse_for();
  if (word == "if") return parse_if();
  if (word == "set") return parse_set();
  if (word == "macro") return parse_macro();
  if (word == "call") return parse_call_block();
  if (word == "filter") return parse_filter_block();
  if (word == "with") return parse_with();
  if (word == "break" || word == "continue") {
    NodePtr out = node(word == "break" ? Kind::loop_break : Kind::loop_continue);
    expect(Token::close_block, "'%}'");
    return out;
  }
  if (word == "generation") {  // marks what the assistant says, for training; shown as it is
    NodePtr out = node(Kind::group);
    expect(Token::close_block, "'%}'");
    constexpr std::array<std::string_view, 1> kEnds{"endgeneration"};
    out->body = parse_statements(kEnds);
    end_block("endgeneration");
    return finished(std::move(out));
  }
  return fail(fmt::format("statement '{}' is not supported", word.substr(0, 40)));
}

// "{% word %}"
void TemplateParser::end_block(std::string_view word) {
  expect(Token::open_block, fmt::format("'{{% {} %}}'", word));
  if (!take_name(word)) fail(fmt::format("expected '{}'", word));
  expect(Token::close_block, "'%}'");
}

// What can be assigned to: a name, a tuple of names, or an attribute of a namespace.
TemplateNodePtr TemplateParser::parse_target() {
  NodePtr target = node(Kind::name);
  const bool parenthesis = take_op("(");
  target->name = expect_name();
  if (take_op(".")) {
    NodePtr attribute = node(Kind::attribute);
    attribute->name = expect_name();
    attribute->kids.push_back(std::move(target));
    target = finished(std::move(attribute));
  } else if (at_op(",")) {
    NodePtr tuple = node(Kind::tuple);
    tuple->kids.push_back(std::move(target));
    while (take_op(",")) {
      if (peek().kind != Token::name || at_name("in")) break;
      tuple->kids.push_back(node(Kind::name));
      tuple->kids.back()->name = expect_name();
    }
    target = finished(std::move(tuple));
  }
  if (parenthesis) expect_op(")");
  return target;
}

TemplateNodePtr TemplateParser::parse_for() {
  NodePtr out = node(Kind::for_loop);
  out->kids.push_back(parse_target());
  if (!take_name("in")) return fail("expected 'in'");
  // No conditional here: "if" filters the loop. A tuple needs no parentheses.
  NodePtr iterable = parse_or();
  if (at_op(",")) {
    NodePtr tuple = node(Kind::tuple);
    tuple->kids.push_back(std::move(iterable));
    while (take_op(",")) {
      if (peek().kind == Token::close_block) break;
      tuple->kids.push_back(parse_or());
    }
    iterable = finished(std::move(tuple));
  }
  out->kids.push_back(std::move(iterable));
  out->kids.push_back(take_name("if") ? parse_expression() : nullptr);
  if (at_name("recursive")) return fail("recursive loops are not supported");
  expect(Token::close_block, "'%}'");
  constexpr std::array<std::string_view, 2> kEnds{"else", "endfor"};
  constexpr std::array<std::string_view, 1> kLast{"endfor"};
  out->body = parse_statements(kEnds);
  if (peek(1).value == "else") {
    end_block("else");
    out->alternate = parse_statements(kLast);
  }
  end_block("endfor");
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_if() {
  NodePtr out = node(Kind::if_chain);
  constexpr std::array<std::string_view, 3> kEnds{"elif", "else", "endif"};
  constexpr std::array<std::string_view, 1> kLast{"endif"};
  out->kids.push_back(parse_tuple_or_expression());
  expect(Token::close_block, "'%}'");
  out->branches.push_back(parse_statements(kEnds));
  while (error_.empty() && peek(1).value == "elif") {
    expect(Token::open_block, "'{%'");
    next();
    out->kids.push_back(parse_tuple_or_expression());
    expect(Token::close_block, "'%}'");
    out->branches.push_back(parse_statements(kEnds));
  }
  if (peek(1).value == "else") {
    end_block("else");
    out->branches.push_back(parse_statements(kLast));
  }
  end_block("endif");
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_set() {
  NodePtr target = parse_target();
  if (take_op("=")) {
    NodePtr out = node(Kind::set);
    out->kids.push_back(std::move(target));
    out->kids.push_back(parse_tuple_or_expression());
    expect(Token::close_block, "'%}'");
    return finished(std::move(out));
  }
  NodePtr out = node(Kind::set_block);
  out->kids.push_back(std::move(target));
  out->kids.push_back(at_op("|") ? parse_filters(node(Kind::captured)) : nullptr);
  expect(Token::close_block, "'%}'");
  constexpr std::array<std::string_view, 1> kEnds{"endset"};
  out->body = parse_statements(kEnds);
  end_block("endset");
  return finished(std::move(out));
}

// "(a, b=1)"
void TemplateParser::parse_parameters(std::vector<std::string>& names, std::vector<NodePtr>& defaults) {
  expect_op("(");
  while (error_.empty() && !at_op(")")) {
    if (!names.empty()) expect_op(",");
    if (at_op(")")) break;
    names.push_back(expect_name());
    if (take_op("="))
      defaults.push_back(parse_expression());
    else if (!defaults.empty())
      fail("a parameter without default follows one with default");
  }
  expect_op(")");
}

TemplateNodePtr TemplateParser::parse_macro() {
  NodePtr out = node(Kind::macro);
  out->name = expect_name();
  parse_parameters(out->names, out->kids);
  expect(Token::close_block, "'%}'");
  constexpr std::array<std::string_view, 1> kEnds{"endmacro"};
  out->body = parse_statements(kEnds);
  end_block("endmacro");
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_call_block() {
  NodePtr out = node(Kind::call_block);
  if (at_op("(")) parse_parameters(out->names, out->alternate);
  out->kids.push_back(parse_expression());
  if (error_.empty() && out->kids[0]->kind != Kind::call) return fail("'call' needs a call");
  expect(Token::close_block, "'%}'");
  constexpr std::array<std::string_view, 1> kEnds{"endcall"};
  out->body = parse_statements(kEnds);
  end_block("endcall");
  return finished(std::move(out));
}

// "| a | b(1)" applied to `input`.
TemplateNodePtr TemplateParser::parse_filters(NodePtr input) {
  while (take_op("|")) input = parse_filter(std::move(input));
  return input;
}

TemplateNodePtr TemplateParser::parse_filter_block() {
  NodePtr out = node(Kind::filter_block);
  out->kids.push_back(parse_filters(parse_filter(node(Kind::captured))));
  expect(Token::close_block, "'%}'");
  constexpr std::array<std::string_view, 1> kEnds{"endfilter"};
  out->body = parse_statements(kEnds);
  end_block("endfilter");
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_with() {
  NodePtr out = node(Kind::with);
  while (error_.empty() && peek().kind != Token::close_block) {
    if (!out->kids.empty()) expect_op(",");
    out->kids.push_back(node(Kind::name));
    out->kids.back()->name = expect_name();
    expect_op("=");
    out->kids.push_back(parse_expression());
  }
  expect(Token::close_block, "'%}'");
  constexpr std::array<std::string_view, 1> kEnds{"endwith"};
  out->body = parse_statements(kEnds);
  end_block("endwith");
  return finished(std::move(out));
}

Result<TemplateNodePtr> parse_template(std::string_view source) {
  GANNET_ASSIGN(const std::vector<TemplateToken> tokens, tokenize_template(source));
  TemplateParser parser(tokens);
  TemplateNodePtr root = parser.parse_all();
  if (!parser.error().empty()) return Error{Errc::bad_file, parser.error()};
  return root;
}

}  // namespace gannet
