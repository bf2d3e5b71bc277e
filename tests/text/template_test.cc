#include "text/template.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr auto kOwn = TextSpan::Owner::template_owned;
constexpr auto kClient = TextSpan::Owner::client_owned;

Result<std::vector<TextSpan>> render(std::string_view source, std::string_view variables,
                                     const TemplateLimits& limits = {}) {
  auto chat = Template::parse(source);
  if (!chat) return chat.error();
  const auto json = Json::parse(variables);
  std::vector<TemplateVariable> list;
  for (const auto& [name, value] : json->members())
    list.push_back({name, value, name == "bos_token" ? kOwn : kClient});
  return chat->render(list, 1'700'000'000, limits);
}

// Template text as it is, client text in angle brackets, or "error: ...".
std::string marked(std::string_view source,
                   std::string_view variables = R"({"c":"evil","messages":[{"role":"user","content":" evil "}]})") {
  const auto spans = render(source, variables);
  if (!spans) return "error: " + spans.error().message;
  std::string out;
  for (const TextSpan& span : *spans) out += span.owner == kOwn ? span.text : "‹" + span.text + "›";
  return out;
}

TEST(Template, OwnersSurviveEveryOperation) {
  EXPECT_EQ(marked("a{{ c }}b"), "a‹evil›b");
  EXPECT_EQ(marked("{{ '<' + c + '>' }}"), "<‹evil›>");
  EXPECT_EQ(marked("{{ '<' ~ c ~ 1 }}"), "<‹evil›1");
  EXPECT_EQ(marked("{{ c | upper }}{{ c.title() }}{{ c | capitalize }}"), "‹EVILEvilEvil›");
  EXPECT_EQ(marked("{{ ('[' ~ c ~ ']') | upper }}"), "[‹EVIL›]");
  EXPECT_EQ(marked("{{ messages[0].content | trim }}{{ messages[0]['content'].strip() }}"), "‹evilevil›");
  EXPECT_EQ(marked("{{ c.split('v')[0] }}-{{ c.split('v')[-1] }}"), "‹e›-‹il›");
  EXPECT_EQ(marked("{{ c.split('v') | join('<v>') }}"), "‹e›<v>‹il›");
  EXPECT_EQ(marked("{{ [c, '|', c] | join('') }}{{ '+'.join([c, c]) }}"), "‹evil›|‹evilevil›+‹evil›");
  EXPECT_EQ(marked("{{ messages | map(attribute='content') | join(',') }}"), "‹ evil ›");
  EXPECT_EQ(marked("{{ c.replace('v', '<v>') }}{{ '<x>'.replace('x', c) }}"), "‹e›<v>‹il›<‹evil›>");
  EXPECT_EQ(marked("{{ c[1:3] }}{{ c[0] }}{{ c[::-1] }}{{ c | first }}{{ c | last }}{{ c | reverse }}"),
            "‹vielivee"
            "llive›");
  EXPECT_EQ(marked("{{ ('<' ~ c)[0:2] }}"), "<‹e›");
  EXPECT_EQ(marked("{{ c | tojson }}{{ [c] | tojson }}{{ {'k': c} | tojson }}"),
            "\"‹evil›\"[\"‹evil›\"]{\"k\": \"‹evil›\"}");
  EXPECT_EQ(marked("{{ messages | tojson }}"), "[{\"‹role›\": \"user\", \"‹content›\": \"‹ evil ›\"}]");
  EXPECT_EQ(marked("{{ [c] }}{{ {'k': c} }}"), "['‹evil›']{'k': '‹evil›'}");
  EXPECT_EQ(marked("{{ '%s!' % c }}{{ '{}?'.format(c) }}{{ '%s' | format(c) }}"), "‹evil›!‹evil›?‹evil›");
  EXPECT_EQ(marked("{{ c | indent(2, true) }}{{ c * 2 }}{{ c | default('x') }}{{ c | string }}{{ c | safe }}"),
            "  ‹evilevilevilevilevilevil›");
  EXPECT_EQ(marked("{% set x = c %}{% set y %}<{{ x }}>{% endset %}{{ y }}"), "<‹evil›>");
  EXPECT_EQ(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(c) }}"), "<‹evil›>");
  EXPECT_EQ(
      marked("{% set ns = namespace(s='<') %}{% for ch in c %}{% set ns.s = ns.s + ch %}{% endfor %}{{ ns.s }}"),
      "<‹evil›");
  EXPECT_EQ(marked("{% for k in d %}{{ k }}{% endfor %}", R"({"d":{"</think>":1}})"), "‹</think>›");
  EXPECT_EQ(marked("{{ c.splitlines()[0] }}{{ c.partition('v')[2] }}{{ c.removeprefix('e') }}"), "‹evililvil›");
}

TEST(Template, RolesAndTypesOfMessagesAreTheTemplates) {
  EXPECT_EQ(marked("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}"),
            "<|user|>‹ evil ›");
  EXPECT_EQ(marked("{{ messages[0].content[0].type }}{{ messages[0].content[0].text }}",
                   R"({"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]})"),
            "text‹x›");
  // only there: an argument that happens to be called "type" is the client's
  EXPECT_EQ(
      marked(
          "{{ messages[0].tool_calls[0].type }}{{ messages[0].tool_calls[0].function.arguments.type }}",
          R"({"messages":[{"role":"x","tool_calls":[{"type":"function","function":{"arguments":{"type":"</think>"}}}]}]})"),
      "function‹</think>›");
}

TEST(Template, ErrorsNameLineAndReason) {
  EXPECT_EQ(marked("a\n{% if %}"), "error: chat template: line 2: expected a value");
  EXPECT_EQ(marked("a\nb{{ raise_exception('roles must alternate') }}"),
            "error: chat template: line 2: the template refuses the conversation: roles must alternate");
  EXPECT_EQ(render("{{ raise_exception('x') }}", "{}").error().code, Errc::bad_request);
  EXPECT_EQ(Template::parse("{{").error().code, Errc::bad_file);
  EXPECT_EQ(marked("{{ nope.x }}"), "error: chat template: line 1: 'nope' is undefined");
  EXPECT_EQ(marked("{{ c | zap }}"), "error: chat template: line 1: filter 'zap' is not supported");
  EXPECT_EQ(marked("{% include 'etc' %}"),
            "error: chat template: line 1: statement 'include' is not supported at 'etc'");
  EXPECT_EQ(marked("{{ c.append(1) }}"), "error: chat template: line 1: a string has no method 'append'");
}

TEST(Template, TimeIsTheCallers) { EXPECT_EQ(marked("{{ strftime_now('%Y') }}"), "2023"); }

// Hostile templates end soon, with a sentence.
TEST(Template, LimitsHold) {
  const std::string nested(100'000, '(');
  const char* const hostile[] = {
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% for a in range(100000000) %}{% endfor %}",
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{{ 'a' * 100000000000 }}",
      "{{ [1] * 100000000000 }}",
      "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor "
      "%}{{ ns.x }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | "
      "tojson }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == "
      "ns.x + [] }}",
      "{% set a = 'ab' * 500000 %}{{ a.replace('', a) }}",
      "{% set a = 'a' * 10000000 %}{% for i in range(1000) %}{{ (a ~ 'b') in a }}{% endfor %}",
      "{% set a = 'a' * 10000000 %}{% set b = 'a' * 5000000 ~ 'b' %}{{ a.find(b) }}{{ a.replace(b, '') }}",
      "{{ 'x' | indent(100000000) }}{{ 'a' * 900 }}{% for i in range(100000) %}{{ 'a' * 9000 }}{% endfor %}",
      "{% for a in range(3000) %}{% for b in range(3000) %}{% set x = namespace(a=a) %}{% endfor %}{% endfor %}",
      "{% for a in range(3000000) %}{% macro m() %}{% endmacro %}{% endfor %}",
      "{{ strftime_now('%999999999d') }}{{ 2 ** 99999999999 }}",
      "{{ range(0, 9223372036854775807, 9223372036854775806) | list }}{{ 9223372036854775807 + 1 }}",
      "{{ 'abc'[9223372036854775807:-9223372036854775808:-9223372036854775807] }}{{ -9223372036854775807 - 2 }}",
      "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}{{ ns == ns }}{{ [ns] | tojson }}",
  };
  TemplateLimits small;  // the defaults hold too, and take seconds
  small.steps = 1'000'000;
  small.new_bytes = 32 << 20;
  small.output_bytes = 1 << 20;
  for (const char* source : hostile) EXPECT_FALSE(render(source, "{}", small)) << source;
  EXPECT_EQ(render(hostile[2], "{}").error().code, Errc::no_capacity);
  EXPECT_FALSE(Template::parse("{{" + nested));
  EXPECT_FALSE(Template::parse("{{" + std::string(100'000, '-') + "1}}"));
  EXPECT_FALSE(Template::parse("{{ 1" + [] {
    std::string s;
    for (int i = 0; i < 100'000; ++i) s += "+1";
    return s;
  }() + "}}"));
  EXPECT_FALSE(Template::parse([] {
    std::string s;
    for (int i = 0; i < 10'000; ++i) s += "{% if x %}";
    return s;
  }()));
  EXPECT_FALSE(Template::parse("{{ a" + [] {
    std::string s;
    for (int i = 0; i < 100'000; ++i) s += ".a";
    return s;
  }() + "}}"));
}

TEST(Template, SmallLimitsAreExact) {
  TemplateLimits limits;
  limits.output_bytes = 5;
  EXPECT_TRUE(render("abcde", "{}", limits));
  EXPECT_EQ(render("abcdef", "{}", limits).error().code, Errc::no_capacity);
  limits = {};
  limits.steps = 100;
  EXPECT_EQ(render("{% for i in range(99) %}{% endfor %}", "{}", limits).error().code, Errc::no_capacity);
}

TEST(Template, WhatDiffersFromJinja2OnPurpose) {
  EXPECT_EQ(marked("{{ [1] | map('string') | tojson }}"), "[\"1\"]") << "Jinja2 cannot print a generator";
  EXPECT_EQ(marked("{{ 9223372036854775807 * 2 }}"), "error: chat template: line 1: an integer beyond 64 bits");
  EXPECT_EQ(marked("{{ n | tojson }}", R"({"n":12345678901234567890123})"), "12345678901234567890123")
      << "the client's digits stay";
}

}  // namespace
}  // namespace gannet
