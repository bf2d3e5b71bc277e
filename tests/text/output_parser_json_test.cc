// Calls as JSON: what is a call, what is text, and that pieces mean the same as the whole.
#include <gtest/gtest.h>

#include <random>

#include "support/parsed_output.h"
#include "text/output_format.h"

namespace gannet {
namespace {

using test::Parsed;

OutputParserOptions options(OutputStart start = OutputStart::content) {
  OutputParserOptions options{.start = start};
  options.tools =
      Json::parse(
          R"([{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"string"},"n":{"type":"integer"}}}}},{"type":"function","function":{"name":"g"}}])")
          ->items();
  return options;
}

Parsed parse(OutputFormat format, const OutputParserOptions& with, std::string_view text, bool length,
             const std::vector<size_t>& cuts) {
  const auto parser = make_output_parser(format, with);
  std::vector<OutputEvent> events;
  int64_t token = 0;
  size_t at = 0;
  for (const size_t cut : cuts) {
    parser->push(text.substr(at, cut - at), token++, events);
    at = cut;
  }
  parser->push(text.substr(at), token++, events);
  Parsed out;
  out.end = parser->finish(length, events);
  for (const OutputEvent& event : events) {
    if (event.kind == OutputEvent::Kind::reasoning) out.reasoning += event.text;
    if (event.kind == OutputEvent::Kind::content) out.content += event.text;
    if (event.kind == OutputEvent::Kind::tool_begin) out.calls.push_back(event.name + "(");
    if (event.kind == OutputEvent::Kind::tool_args) out.calls.back() += event.text;
    if (event.kind == OutputEvent::Kind::tool_end) out.calls.back() += ")";
  }
  return out;
}

// Whole, at every single cut, and byte by byte.
Parsed parse(OutputFormat format, std::string_view text, OutputStart start = OutputStart::content,
             bool length = false) {
  const OutputParserOptions with = options(start);
  const Parsed whole = parse(format, with, text, length, {});
  std::vector<size_t> every;
  for (size_t i = 1; i < text.size(); ++i) {
    every.push_back(i);
    EXPECT_EQ(whole, parse(format, with, text, length, {i})) << text << " cut at " << i;
  }
  EXPECT_EQ(whole, parse(format, with, text, length, every)) << text;
  return whole;
}

TEST(HermesOutput, CallsTextAndReasoning) {
  const auto hermes = [](std::string_view text, OutputStart start = OutputStart::content) {
    return parse(OutputFormat::hermes, text, start);
  };
  EXPECT_EQ(hermes("Hi.\n\nThere <b>\n"), (Parsed{"", "Hi.\n\nThere <b>\n", {}}));
  EXPECT_EQ(hermes("<think>\nhm\n</think>\n\nHi"), (Parsed{"hm", "Hi", {}}));
  EXPECT_EQ(hermes("hm</think>Hi", OutputStart::reasoning), (Parsed{"hm", "Hi", {}}));
  EXPECT_EQ(
      hermes("Sure.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"x<y\", \"n\": 1.50}}\n</tool_call>\n"
             "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"),
      (Parsed{"", "Sure.", {R"(f({"a": "x<y", "n": 1.5}))", "g({})"}, OutputEnd::tool_calls}));
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>"),
            (Parsed{"", "", {R"(f({"a": 1}))"}, OutputEnd::tool_calls}))
      << "encoded twice";
  EXPECT_EQ(hermes("<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=n>\n2\n</parameter>\n"
                   "</function>\n</tool_call>"),
            (Parsed{"", "", {R"(f({"a": "1", "n": 2}))"}, OutputEnd::tool_calls}));
}

TEST(HermesOutput, WhatIsNoCallStaysText) {
  for (const char* text : {"<tool_call>not json</tool_call>", "<tool_call>{\"name\":5}</tool_call>",
                           "<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>", "a <tool_call> is a tag"}) {
    const Parsed parsed = parse(OutputFormat::hermes, text);
    EXPECT_TRUE(parsed.calls.empty());
    EXPECT_EQ(parsed.end, OutputEnd::stop);
    EXPECT_EQ(parsed.content.substr(0, 4), std::string(text).substr(0, 4)) << parsed;
  }
  EXPECT_EQ(parse(OutputFormat::hermes, "<tool_call>{\"name\":\"f\",\"arguments\":{}}").calls.size(), 1u)
      << "an end of text closes a whole call";
  EXPECT_EQ(parse(OutputFormat::hermes, "x <tool_call>{\"name\":\"f\",\"argu", OutputStart::content, true),
            (Parsed{"", "x ", {}, OutputEnd::length}));
}

TEST(LlamaOutput, TheAnswerIsTheCall) {
  const auto llama = [](std::string_view text) { return parse(OutputFormat::llama3_json, text); };
  EXPECT_EQ(llama("{\"name\": \"f\", \"parameters\": {\"a\": \"}\\\"{\"}}"),
            (Parsed{"", "", {R"(f({"a": "}\"{"}))"}, OutputEnd::tool_calls}));
  EXPECT_EQ(llama("<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}"),
            (Parsed{"", "", {"f({})"}, OutputEnd::tool_calls}));
  EXPECT_EQ(llama("{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}").calls.size(), 2u);
  EXPECT_EQ(llama("{\"answer\": 42}"), (Parsed{"", "{\"answer\": 42}", {}})) << "JSON that is no call";
  EXPECT_EQ(llama("{\"name\": \"Ann\", \"age\": 5}"), (Parsed{"", "{\"name\": \"Ann\", \"age\": 5}", {}}));
  EXPECT_EQ(llama("Use {\"name\": \"f\", \"parameters\": {}}").calls.size(), 0u) << "inside prose it is prose";
}

TEST(JsonOutput, RandomBytesMeanTheSameInPieces) {
  const std::string_view parts[] = {"<tool_call>",
                                    "</tool_call>",
                                    "{\"name\": \"f\", \"arguments\": {}}",
                                    "<think>",
                                    "</think>",
                                    "{",
                                    "}",
                                    "\n",
                                    " ",
                                    ";",
                                    "<|python_tag|>",
                                    "é",
                                    "<",
                                    "\"",
                                    "\\",
                                    "text",
                                    "{\"name\": \"g\", \"parameters\": {\"a\": [1]}}"};
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (uint32_t n = random() % 8; n > 0; --n) text += parts[random() % std::size(parts)];
    const OutputFormat format = random() % 2 ? OutputFormat::hermes : OutputFormat::llama3_json;
    const OutputParserOptions with = options(random() % 2 ? OutputStart::reasoning : OutputStart::content);
    const bool length = random() % 2;
    const Parsed whole = parse(format, with, text, length, {});
    std::vector<size_t> cuts;
    for (size_t at = 1 + random() % 5; at < text.size(); at += 1 + random() % 5) cuts.push_back(at);
    ASSERT_EQ(whole, parse(format, with, text, length, cuts)) << text;
  }
}

TEST(OutputFormatChoice, ByFlagEncoderAndTemplate) {
  ChatModelInfo model;
  EXPECT_EQ(*output_format(model, "deepseek_v41"), OutputFormat::deepseek_dsml);
  EXPECT_EQ(*output_format(model, "template"), OutputFormat::plain);
  model.chat_template = "{% if tools %}<tool_call>{% endif %}";
  EXPECT_EQ(*output_format(model, "template"), OutputFormat::hermes);
  EXPECT_EQ(*output_format(model, "template", "llama3_json"), OutputFormat::llama3_json);
  EXPECT_EQ(output_format(model, "template", "nope").error().code, Errc::bad_request);
}

}  // namespace
}  // namespace gannet
