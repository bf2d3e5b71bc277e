#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "text/template_parser.h"

namespace gannet {

using Token = TemplateToken::Kind;
using Kind = TemplateNode::Kind;

TemplateNodePtr TemplateParser::parse_tuple_or_expression() {
  NodePtr first = parse_expression();
  if (!at_op(",")) return first;
  NodePtr tuple = node(Kind::tuple);
  tuple->kids.push_back(std::move(first));
  while (take_op(",")) {
    const Token kind = peek().kind;
    if (kind == Token::close_block || kind == Token::close_output || at_op(")") || at_op("]")) break;
    tuple->kids.push_back(parse_expression());
  }
  return finished(std::move(tuple));
}

TemplateNodePtr TemplateParser::parse_expression() {
  if (++depth_ > kTemplateMaxHeight) return fail(fmt::format("nested more than {} deep", kTemplateMaxHeight));
  NodePtr value = parse_or();
  while (at_name("if")) {
    NodePtr out = node(Kind::conditional);
    next();
    out->kids.push_back(parse_or());
    out->kids.push_back(std::move(value));
    out->kids.push_back(take_name("else") ? parse_expression() : nullptr);
    value = finished(std::move(out));
  }
  --depth_;
  return value;
}

TemplateNodePtr TemplateParser::parse_or() {
  NodePtr left = parse_and();
  while (at_name("or")) {
    NodePtr out = node(Kind::logical_or);
    next();
    out->kids.push_back(std::move(left));
    out->kids.push_back(parse_and());
    left = finished(std::move(out));
  }
  return left;
}

TemplateNodePtr TemplateParser::parse_and() {
  NodePtr left = parse_not();
  while (at_name("and")) {
    NodePtr out = node(Kind::logical_and);
    next();
    out->kids.push_back(std::move(left));
    out->kids.push_back(parse_not());
    left = finished(std::move(out));
  }
  return left;
}

TemplateNodePtr TemplateParser::parse_not() {
  if (!at_name("not")) return parse_compare();
  if (++depth_ > kTemplateMaxHeight) return fail(fmt::format("nested more than {} deep", kTemplateMaxHeight));
  NodePtr out = node(Kind::logical_not);
  next();
  out->kids.push_back(parse_not());
  --depth_;
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_compare() {
  NodePtr left = parse_sum();
  NodePtr out = node(Kind::compare);
  while (true) {
    std::string op;
    for (const std::string_view candidate : {"==", "!=", "<=", ">=", "<", ">"})
      if (at_op(candidate)) op = candidate;
    if (at_name("in")) op = "in";
    if (at_name("not") && peek(1).kind == Token::name && peek(1).value == "in") {
      next();
      op = "not in";
    }
    if (op.empty()) break;
    next();
    out->names.push_back(std::move(op));
    out->kids.push_back(parse_sum());
  }
  if (out->names.empty()) return left;
  out->kids.insert(out->kids.begin(), std::move(left));
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_sum() {
  NodePtr left = parse_concat();
  while (at_op("+") || at_op("-")) {
    NodePtr out = node(Kind::binary);
    out->name = peek().value;
    next();
    out->kids.push_back(std::move(left));
    out->kids.push_back(parse_concat());
    left = finished(std::move(out));
  }
  return left;
}

TemplateNodePtr TemplateParser::parse_concat() {
  NodePtr left = parse_product();
  if (!at_op("~")) return left;
  NodePtr out = node(Kind::concat);
  out->kids.push_back(std::move(left));
  while (take_op("~")) out->kids.push_back(parse_product());
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_product() {
  NodePtr left = parse_power();
  while (at_op("*") || at_op("/") || at_op("//") || at_op("%")) {
    NodePtr out = node(Kind::binary);
    out->name = peek().value;
    next();
    out->kids.push_back(std::move(left));
    out->kids.push_back(parse_power());
    left = finished(std::move(out));
  }
  return left;
}

TemplateNodePtr TemplateParser::parse_power() {
  NodePtr left = parse_unary(true);
  while (at_op("**")) {
    NodePtr out = node(Kind::binary);
    out->name = peek().value;
    next();
    out->kids.push_back(std::move(left));
    out->kids.push_back(parse_unary(true));
    left = finished(std::move(out));
  }
  return left;
}

TemplateNodePtr TemplateParser::parse_unary(bool with_filters) {
  NodePtr out;
  if (at_op("-") || at_op("+")) {
    if (++depth_ > kTemplateMaxHeight) return fail(fmt::format("nested more than {} deep", kTemplateMaxHeight));
    NodePtr sign = node(at_op("-") ? Kind::negate : Kind::plus);
    next();
    sign->kids.push_back(parse_unary(false));
    --depth_;
    out = finished(std::move(sign));
  } else {
    out = parse_primary();
  }
  out = parse_postfix(std::move(out));
  return with_filters ? parse_filters_and_tests(std::move(out)) : std::move(out);
}

TemplateNodePtr TemplateParser::parse_primary() {
  const TemplateToken& token = peek();
  NodePtr out = node(Kind::name);
  switch (token.kind) {
    case Token::name:
      if (token.value == "true" || token.value == "True" || token.value == "false" || token.value == "False") {
        out->kind = Kind::boolean;
        out->flag = token.value == "true" || token.value == "True";
      } else if (token.value == "none" || token.value == "None") {
        out->kind = Kind::none;
      }
      out->name = token.value;
      next();
      return out;
    case Token::text:
      out->kind = Kind::text;
      while (peek().kind == Token::text) {  // neighbours are one string
        out->name += peek().value;
        next();
      }
      return out;
    case Token::integer: {
      out->kind = Kind::integer;
      const auto end = token.value.data() + token.value.size();
      const auto parsed = std::from_chars(token.value.data(), end, out->integer);
      if (parsed.ec != std::errc{} || parsed.ptr != end) return fail("an integer beyond 64 bits");
      next();
      return out;
    }
    case Token::real:
      out->kind = Kind::real;
      out->real = std::strtod(token.value.c_str(), nullptr);
      next();
      return out;
    case Token::op:
      if (token.value == "(") return parse_parenthesis();
      if (token.value == "[") return parse_list();
      if (token.value == "{") return parse_dict();
      break;
    default:
      break;
  }
  return fail("expected a value");
}

TemplateNodePtr TemplateParser::parse_parenthesis() {
  next();
  if (take_op(")")) return node(Kind::tuple);
  NodePtr inner = parse_tuple_or_expression();
  expect_op(")");
  return inner;
}

TemplateNodePtr TemplateParser::parse_list() {
  NodePtr out = node(Kind::list);
  next();
  while (error_.empty() && !at_op("]")) {
    if (!out->kids.empty()) expect_op(",");
    if (at_op("]")) break;
    out->kids.push_back(parse_expression());
  }
  expect_op("]");
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_dict() {
  NodePtr out = node(Kind::dict);
  next();
  while (error_.empty() && !at_op("}")) {
    if (!out->kids.empty()) expect_op(",");
    if (at_op("}")) break;
    out->kids.push_back(parse_expression());
    expect_op(":");
    out->kids.push_back(parse_expression());
  }
  expect_op("}");
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_postfix(NodePtr value) {
  while (error_.empty()) {
    if (take_op(".")) {
      if (peek().kind == Token::integer) {  // a.0 is a[0]
        NodePtr out = node(Kind::subscript);
        out->kids.push_back(std::move(value));
        out->kids.push_back(parse_primary());
        value = finished(std::move(out));
        continue;
      }
      NodePtr out = node(Kind::attribute);
      out->name = expect_name();
      out->kids.push_back(std::move(value));
      value = finished(std::move(out));
    } else if (at_op("[")) {
      value = parse_subscript(std::move(value));
    } else if (at_op("(")) {
      NodePtr out = node(Kind::call);
      out->kids.push_back(std::move(value));
      parse_arguments(*out);
      value = finished(std::move(out));
    } else {
      break;
    }
  }
  return value;
}

TemplateNodePtr TemplateParser::parse_subscript(NodePtr object) {
  NodePtr out = node(Kind::subscript);
  out->kids.push_back(std::move(object));
  next();
  NodePtr first = at_op(":") ? nullptr : parse_tuple_or_expression();
  if (!at_op(":")) {
    out->kids.push_back(std::move(first));
    expect_op("]");
    return finished(std::move(out));
  }
  out->kind = Kind::slice;
  out->kids.push_back(std::move(first));
  while (out->kids.size() < 4) {
    const bool more = take_op(":");
    out->kids.push_back(!more || at_op(":") || at_op("]") ? nullptr : parse_expression());
  }
  expect_op("]");
  return finished(std::move(out));
}

// "(a, b, key=c)": appends to kids, keyword names to names.
void TemplateParser::parse_arguments(Node& call) {
  expect_op("(");
  bool first = true;
  while (error_.empty() && !at_op(")")) {
    if (!first) expect_op(",");
    first = false;
    if (at_op(")")) break;
    if (at_op("*") || at_op("**")) {
      fail("unpacking of arguments is not supported");
      return;
    }
    if (peek().kind == Token::name && peek(1).kind == Token::op && peek(1).value == "=") {
      call.names.push_back(expect_name());
      next();
    } else if (!call.names.empty()) {
      fail("a positional argument follows a keyword argument");
      return;
    }
    call.kids.push_back(parse_expression());
  }
  expect_op(")");
}

TemplateNodePtr TemplateParser::parse_filters_and_tests(NodePtr value) {
  while (error_.empty()) {
    if (take_op("|")) {
      value = parse_filter(std::move(value));
    } else if (take_name("is")) {
      value = parse_test(std::move(value));
    } else if (at_op("(") || at_op("[") || at_op(".")) {
      // calling the result of a filter; "." and "[" do not follow a filter in the language, "(" does
      if (!at_op("(")) return fail("a filter's result needs parentheses here");
      value = parse_postfix(std::move(value));
    } else {
      break;
    }
  }
  return value;
}

TemplateNodePtr TemplateParser::parse_filter(NodePtr input) {
  NodePtr out = node(Kind::filter);
  out->name = expect_name();
  while (take_op(".")) out->name += "." + expect_name();
  out->kids.push_back(std::move(input));
  if (at_op("(")) parse_arguments(*out);
  return finished(std::move(out));
}

TemplateNodePtr TemplateParser::parse_test(NodePtr input) {
  NodePtr out = node(Kind::test);
  out->flag = take_name("not");
  out->name = expect_name();
  out->kids.push_back(std::move(input));
  const bool word_follows = peek().kind == Token::name && !at_name("else") && !at_name("or") && !at_name("and") &&
                            !at_name("is") && !at_name("if") && !at_name("in") && !at_name("not");
  if (at_op("(")) {
    parse_arguments(*out);
  } else if (word_follows || peek().kind == Token::text || peek().kind == Token::integer ||
             peek().kind == Token::real || at_op("[") || at_op("{")) {
    out->kids.push_back(parse_postfix(parse_primary()));  // "is divisibleby 3"
  }
  return finished(std::move(out));
}

}  // namespace gannet
