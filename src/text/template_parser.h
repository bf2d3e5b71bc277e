// Recursive descent over template tokens. Internal to text/: use parse_template() of template_ast.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/template_ast.h"
#include "text/template_lexer.h"

namespace gannet {

// The first error sticks: after it every call returns a node that nobody will see, and the position is at the end,
// so that all loops end. Check error() once, at the end.
class TemplateParser {
 public:
  using Node = TemplateNode;
  using NodePtr = TemplateNodePtr;

  explicit TemplateParser(std::span<const TemplateToken> tokens) : tokens_(tokens) {}

  NodePtr parse_all();
  const std::string& error() const { return error_; }

 private:
  // statements (template_parser.cc)
  std::vector<NodePtr> parse_statements(std::span<const std::string_view> ends);
  NodePtr parse_block();
  NodePtr parse_for();
  NodePtr parse_if();
  NodePtr parse_set();
  NodePtr parse_macro();
  NodePtr parse_call_block();
  NodePtr parse_filter_block();
  NodePtr parse_with();
  void parse_parameters(std::vector<std::string>& names, std::vector<NodePtr>& defaults);
  NodePtr parse_target();
  NodePtr parse_filters(NodePtr input);
  void end_block(std::string_view word);

  // expressions (template_expressions.cc)
  NodePtr parse_expression();  // conditional
  NodePtr parse_tuple_or_expression();
  NodePtr parse_or();
  NodePtr parse_and();
  NodePtr parse_not();
  NodePtr parse_compare();
  NodePtr parse_sum();
  NodePtr parse_concat();
  NodePtr parse_product();
  NodePtr parse_power();
  NodePtr parse_unary(bool with_filters);
  NodePtr parse_primary();
  NodePtr parse_postfix(NodePtr node);
  NodePtr parse_filters_and_tests(NodePtr node);
  NodePtr parse_filter(NodePtr input);
  NodePtr parse_test(NodePtr input);
  NodePtr parse_subscript(NodePtr object);
  NodePtr parse_list();
  NodePtr parse_dict();
  NodePtr parse_parenthesis();
  void parse_arguments(Node& call);

  // tokens
  const TemplateToken& peek(size_t ahead = 0) const;
  void next();
  bool at_op(std::string_view op) const { return peek().kind == TemplateToken::Kind::op && peek().value == op; }
  bool at_name(std::string_view name) const {
    return peek().kind == TemplateToken::Kind::name && peek().value == name;
  }
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  void expect(TemplateToken::Kind kind, std::string_view what);
  void expect_op(std::string_view op);
  std::string expect_name();

  // nodes
  NodePtr fail(std::string_view what);
  NodePtr node(Node::Kind kind) const;
  // Sets the height from what hangs below; fails when it exceeds the limit.
  NodePtr finished(NodePtr node);

  std::span<const TemplateToken> tokens_;
  size_t at_ = 0;
  int32_t depth_ = 0;
  std::string error_;
};

}  // namespace gannet
