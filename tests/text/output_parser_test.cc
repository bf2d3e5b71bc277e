#include "text/output_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/parsed_output.h"
#include "text/chat_deepseek_v41.h"

namespace gannet {
namespace {

using Kind = OutputEvent::Kind;

const std::string kOpen = "\n\n<｜DSML｜ calls>\n", kShut = "\n</｜DSML｜ calls>";

std::string parameter(std::string name, std::string type, std::string value) {
  return "<｜DSML｜ parameter name=\"" + name + "\" string=\"" + type + "\">" + value + "</｜DSML｜ parameter>";
}
std::string invoke(std::string name, std::string body) {
  return "<｜DSML｜ invoke name=\"" + name + "\">\n" + body + "\n</｜DSML｜ invoke>";
}

std::vector<Json> tools() {
  return Json::
      parse(R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number"}},"required":["a"]}}},
                         {"type":"function","function":{"name":"g"}}])")
          ->items();
}

using test::Parsed;

bool whole_characters(std::string_view text) {
  return Json::parse(Json(std::string(text)).dump())->as_string()->size() == text.size() &&
         text.find("\xEF\xBF\xBD") == std::string_view::npos;
}

Parsed collect(const std::vector<OutputEvent>& events, OutputEnd end) {
  Parsed out;
  out.end = end;
  int64_t token = 0;
  for (const OutputEvent& event : events) {
    EXPECT_GE(event.first_token, token) << "ranges rise";
    EXPECT_LE(event.first_token, event.last_token);
    token = event.last_token;
    switch (event.kind) {
      case Kind::reasoning:
        out.reasoning += event.text;
        break;
      case Kind::content:
        out.content += event.text;
        break;
      case Kind::tool_begin:
        EXPECT_EQ(event.tool_index, static_cast<int32_t>(out.calls.size()));
        out.calls.push_back((event.name_space.empty() ? "" : event.name_space + "/") + event.name + "(");
        break;
      case Kind::tool_args:
        out.calls.at(static_cast<size_t>(event.tool_index)) += event.text;
        break;
      case Kind::tool_end:
        out.calls.at(static_cast<size_t>(event.tool_index)) += ")";
        break;
    }
  }
  return out;
}

// `cuts`: ends of the pieces.
Parsed parse(std::string_view text, OutputParserOptions options, const std::vector<size_t>& cuts,
             bool length = false) {
  const auto parser = make_dsml_output_parser(std::move(options));
  std::vector<OutputEvent> events;
  size_t begin = 0;
  int64_t token = 0;
  for (const size_t end : cuts) {
    parser->push(text.substr(begin, end - begin), token++, events);
    begin = end;
  }
  parser->push(text.substr(begin), token, events);
  const OutputEnd end = parser->finish(length, events);
  for (const OutputEvent& event : events)
    EXPECT_TRUE(whole_characters(event.text) || text.find("\xEF\xBF\xBD") != std::string_view::npos) << event.text;
  return collect(events, end);
}

// Whole and byte by byte, which must agree.
Parsed parse(std::string_view text, OutputStart start = OutputStart::content, bool with_tools = true,
             bool length = false) {
  const OutputParserOptions options{start, false, with_tools ? tools() : std::vector<Json>{}};
  std::vector<size_t> every(text.size());
  for (size_t i = 0; i < every.size(); ++i) every[i] = i + 1;
  const Parsed whole = parse(text, options, {}, length);
  EXPECT_EQ(whole, parse(text, options, every, length)) << text;
  return whole;
}

TEST(DsmlOutput, ReasoningAndContent) {
  EXPECT_EQ(parse("\nhm\nhm\n\n</think>\n\nAnswer.\n", OutputStart::reasoning),
            (Parsed{"hm\nhm", "Answer.\n", {}}));
  EXPECT_EQ(parse("<think>hm<think></think>x</think>y", OutputStart::reasoning), (Parsed{"hm", "xy", {}}));
  EXPECT_EQ(parse("\n<think>hm</think>y"), (Parsed{"hm", "y", {}})) << "thinks without being asked";
  EXPECT_EQ(parse("a<think>b"), (Parsed{"", "a<think>b", {}}));
  EXPECT_EQ(parse("hm", OutputStart::reasoning), (Parsed{"hm", "", {}}));
  EXPECT_EQ(parse("hm</thin", OutputStart::reasoning), (Parsed{"hm</thin", "", {}}));
  EXPECT_EQ(parse("</think>y", OutputStart::reasoning), (Parsed{"", "y", {}}));
  EXPECT_EQ(parse("a < b << c </ d <", OutputStart::content), (Parsed{"", "a < b << c </ d <", {}}));
  EXPECT_EQ(parse("x", OutputStart::content, true, true).end, OutputEnd::length);
  EXPECT_EQ(parse("\n\nx", {OutputStart::content, true, {}}, {}), (Parsed{"", "\n\nx", {}}))
      << "goes on with a prefix";
}

TEST(DsmlOutput, Calls) {
  EXPECT_EQ(parse("Sure." + kOpen +
                  invoke("f", parameter("a", "true", "x \"y\"\n\\") + "\n" + parameter("n", "false", "1.50")) +
                  "\n" + invoke("g", "") + kShut),
            (Parsed{"", "Sure.", {R"(f({"a": "x \"y\"\n\\", "n": 1.50}))", "g({})"}, OutputEnd::tool_calls}));
  EXPECT_EQ(parse("hm\n" + kOpen + invoke("f", parameter("a", "true", "")) + kShut, OutputStart::reasoning),
            (Parsed{"hm", "", {R"(f({"a": ""}))"}, OutputEnd::tool_calls}))
      << "a call inside reasoning ends it";
  EXPECT_EQ(parse(kOpen + invoke("ns::f", parameter("a", "true", "数据🙂")) + kShut),
            (Parsed{"", "", {R"(ns/f({"a": "数据🙂"}))"}, OutputEnd::tool_calls}));
  EXPECT_EQ(parse(kOpen + invoke("f", parameter("a", "true", "2>&1")) + kShut).calls[0], R"(f({"a": "2>&1"}))")
      << "no tail of the tag leaks";
  EXPECT_EQ(parse(kOpen + invoke("f", parameter("a", "true", "</ <｜DS < </｜DSM")) + kShut).calls[0],
            R"(f({"a": "</ <｜DS < </｜DSM"}))");
  EXPECT_EQ(parse(kOpen + invoke("f", parameter("a", "false", " [1, {\"b\": null}] ")) + kShut).calls[0],
            R"(f({"a": [1, {"b": null}]}))");
  const std::string text = "x" + kOpen + invoke("f", "") + kShut;
  EXPECT_EQ(parse(text, OutputStart::content, false), (Parsed{"", text, {}})) << "no tools: markup is content";
}

TEST(DsmlOutput, OtherSpellings) {
  std::string v4 =
      "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" "
      "string=\"true\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
  EXPECT_EQ(parse("t" + v4 + "tail"), (Parsed{"", "t", {R"(f({"a": "x"}))"}, OutputEnd::tool_calls}));
  for (size_t at; (at = v4.find("tool_calls")) != std::string::npos;) v4.replace(at, 10, "function_calls");
  EXPECT_EQ(parse("t" + v4), (Parsed{"", "t", {R"(f({"a": "x"}))"}, OutputEnd::tool_calls}));
}

TEST(DsmlOutput, Malformed) {
  const std::string call = invoke("f", parameter("a", "true", "x"));
  const Parsed one{"", "t", {R"(f({"a": "x"}))"}, OutputEnd::tool_calls};
  EXPECT_EQ(parse("t\n" + call), one) << "no opening, no closing";
  EXPECT_EQ(parse("t" + kOpen + call), one) << "block not closed";
  EXPECT_EQ(parse("t" + kOpen + call + kShut + "more text" + call), one) << "text after the block";
  EXPECT_EQ(parse("t" + kOpen + "junk " + call + " junk" + kShut), one);
  EXPECT_EQ(parse("t" + kOpen + "<｜DSML｜ invoke name=\"f\">\n" + parameter("a", "true", "x")), one)
      << "invoke not closed, all required there";
  EXPECT_EQ(parse("t" + kOpen + "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" string=\"true\">x"),
            one)
      << "value not closed";
  EXPECT_EQ(parse("t" + kOpen + "<｜DSML｜ invoke name=\"f\">\n" + parameter("n", "false", "1")),
            (Parsed{"", "t", {R"(f({"n": 1)"}, OutputEnd::stop}))
      << "a required one is missing";
  EXPECT_EQ(parse("t" + kOpen + "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" string=\"true\">x",
                  OutputStart::content, true, true),
            (Parsed{"", "t", {R"(f({"a": "x)"}, OutputEnd::length}))
      << "cut: left open";
  EXPECT_EQ(
      parse("t" + kOpen + "<｜DSML｜ invoke name=\"f\">\n" + parameter("a", "true", "x") + "</｜DSML｜ calls>"),
      one)
      << "invoke closed by the block";
  EXPECT_EQ(parse("t" + kOpen + "<｜DSML｜ invoke name=\"f\">\n" + parameter("a", "true", "x") + "\n" +
                  invoke("g", "") + kShut)
                .calls,
            (std::vector<std::string>{R"(f({"a": "x"}))", "g({})"}))
      << "next invoke closes the one before";
}

TEST(DsmlOutput, MalformedParameters) {
  EXPECT_EQ(
      parse(kOpen +
            invoke("f", parameter("a", "true", "x") + parameter("a", "true", "y") + parameter("n", "false", "2")) +
            kShut)
          .calls[0],
      R"(f({"a": "x", "n": 2}))")
      << "the first of two counts";
  EXPECT_EQ(parse(kOpen + invoke("nope", parameter("q", "true", "x")) + kShut).calls[0], R"(nope({"q": "x"}))")
      << "unknown tools are the client's business";
  EXPECT_EQ(parse(kOpen + invoke("f", parameter("n", "false", "1e")) + kShut).calls[0], R"(f({"n": "1e"}))")
      << "no JSON: a string";
  EXPECT_EQ(parse(kOpen +
                  invoke("f",
                         "<｜DSML｜ parameter name=\"n\">5</｜DSML｜ parameter><｜DSML｜ parameter "
                         "name=\"a\">5</｜DSML｜ parameter>") +
                  kShut)
                .calls[0],
            R"(f({"n": 5, "a": "5"}))")
      << "untyped: by schema";
  EXPECT_EQ(parse(kOpen + invoke("f", R"({"a": "}{\"", "n": [1]})") + kShut).calls[0],
            R"(f({"a": "}{\"", "n": [1]}))")
      << "a JSON body";
  EXPECT_EQ(parse(kOpen + invoke("f", parameter("arguments", "false", R"({"a": 1})")) + kShut).calls[0],
            R"(f({"a": 1}))")
      << "a wrapper";
  EXPECT_EQ(parse(kOpen +
                  invoke("f", parameter("arguments", "false", R"({"a": 1})") + parameter("a", "true", "x")) + kShut)
                .calls[0],
            R"(f({"arguments": {"a": 1}, "a": "x"}))")
      << "no wrapper after all";
  EXPECT_EQ(parse("Use `<｜DSML｜ calls>` for it."), (Parsed{"", "Use `<｜DSML｜ calls>` for it.", {}}))
      << "prose about calls";
  const std::string long_prose = "`<｜DSML｜ calls>` " + std::string(10'000, 'x') + "\n</think>y";
  EXPECT_EQ(parse(long_prose).content, "`<｜DSML｜ calls>` " + std::string(10'000, 'x') + "\ny");
}

TEST(DsmlOutput, LongValuesAreHeldWithinBounds) {
  const std::string big = "[\"" + std::string(2 << 20, 'x') + "é\"]";
  const OutputParserOptions options{OutputStart::content, false, tools()};
  EXPECT_EQ(parse(kOpen + invoke("f", parameter("a", "false", big)) + kShut, options, {}).calls[0],
            "f({\"a\": " + Json(big).dump() + "})");
}

// What the encoder writes, cut at random, gives back what was encoded.
class RoundTrip {
 public:
  explicit RoundTrip(uint32_t seed) : random_(seed) {}

  void run() {
    ChatMessage said;
    said.role = Role::assistant;
    said.reasoning = text();
    said.blocks.push_back(ContentBlock::of_text(text()));
    std::vector<std::string> calls;
    for (int i = pick(4); i > 0; --i) {
      Json arguments = Json::object();
      for (int k = pick(4); k > 0; --k)
        arguments.set(std::string(1, static_cast<char>('a' + pick(8))) + "数", value(0));
      said.tool_calls.push_back(
          {"id" + std::to_string(i), pick(3) == 0 ? "ns" : "", pick(2) == 0 ? "f" : "g", arguments.dump()});
      const ChatToolCall& call = said.tool_calls.back();
      calls.push_back((call.name_space.empty() ? "" : call.name_space + "/") + call.name + "(" +
                      arguments.dump_python() + ")");
    }
    Conversation conversation;
    ChatMessage asked;
    asked.blocks.push_back(ContentBlock::of_text("q"));
    conversation.messages = {asked, said, asked};
    conversation.tools = tools();
    const std::string prompt = make_deepseek_v41_encoder()->encode(conversation)->text();
    const std::string head = std::string(deepseek_v41::kUser) + "q" + std::string(deepseek_v41::kAssistant) +
                             std::string(deepseek_v41::kThink);
    const size_t begin = prompt.find(head) + head.size(), end = prompt.find(deepseek_v41::kEos, begin);
    const std::string written = prompt.substr(begin, end - begin);

    const auto strip = [](std::string t, bool right) {
      t.erase(0, std::min(t.find_first_not_of('\n'), t.size()));
      while (right && t.ends_with('\n')) t.pop_back();
      return t;
    };
    const Parsed want{strip(*said.reasoning, true), strip(said.blocks[0].text, !calls.empty()), calls,
                      calls.empty() ? OutputEnd::stop : OutputEnd::tool_calls};
    std::vector<size_t> cuts;
    for (size_t at = 0; (at += static_cast<size_t>(1 + pick(pick(2) == 0 ? 3 : 40))) < written.size();)
      cuts.push_back(at);
    ASSERT_EQ(parse(written, {OutputStart::reasoning, false, tools()}, cuts), want) << written;
    ASSERT_EQ(parse(written, {OutputStart::reasoning, false, tools()}, {}), want) << written;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  std::string text() {
    static const std::vector<std::string> kPieces{
        "a",      "Größe",  "数据", "🙂", "\n", "\n\n", " ",          "<",  "</",           "<think",
        "</thin", "<｜DSM", "｜",   "\"",   "\\", "2>&1", "{\"a\": 1}", "\t", "invoke name=", "x y z"};
    std::string out;
    for (int i = pick(9); i > 0; --i) out += kPieces[static_cast<size_t>(pick(static_cast<int>(kPieces.size())))];
    return out;
  }
  Json value(int depth) {
    switch (pick(depth > 2 ? 5 : 7)) {
      case 0:
      case 1:
        return Json(text());
      case 2:
        return Json::number_from_text(pick(2) == 0 ? "1.5" : "-12");
      case 3:
        return Json(pick(2) == 0);
      case 4:
        return Json();
      case 5: {
        Json list = Json::array();
        for (int i = pick(3); i > 0; --i) list.push(value(depth + 1));
        return list;
      }
      default: {
        Json object = Json::object();
        for (int i = pick(3); i > 0; --i) object.set(text(), value(depth + 1));
        return object;
      }
    }
  }
  std::mt19937 random_;
};

TEST(DsmlOutput, RandomTurnsComeBackHoweverTheyAreCut) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    RoundTrip(seed).run();
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace gannet
