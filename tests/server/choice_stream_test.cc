// From tokens to reply events: the joined stream is the unstreamed reply, whatever the tokens are.
#include "server/choice_stream.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/utf8.h"
#include "server/reply_collector.h"
#include "text/tokenizer_file.h"

namespace gannet::server {
namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer tiny = *load_tokenizer(std::string(GANNET_SOURCE_DIR) + "/tests/golden/tokenizer/tiny");
  return tiny;
}

const std::string kOpen = "\n\n<｜DSML｜ calls>\n", kShut = "\n</｜DSML｜ calls>";
std::string dsml_call(const std::string& value) {
  return kOpen + "<｜DSML｜ invoke name=\"run\">\n<｜DSML｜ parameter name=\"cmd\" string=\"true\">" + value +
         "</｜DSML｜ parameter>\n</｜DSML｜ invoke>" + kShut;
}

GenerationRequest chat(OutputFormat format, OutputStart start = OutputStart::content) {
  GenerationRequest request;
  request.output = OutputSpec{.format = format, .start = start};
  request.output->tools =
      Json::parse(
          R"([{"type":"function","function":{"name":"run","parameters":{"type":"object","properties":{"cmd":{"type":"string"},"n":{"type":"integer"}},"required":["cmd"]}}}])")
          ->items();
  return request;
}

// Ids that spell any bytes: one a byte, or what the tokenizer makes of it.
std::vector<int32_t> byte_ids(std::string_view text) {
  static const std::vector<int32_t> of_byte = [] {
    std::vector<int32_t> ids(256, -1);
    for (int32_t id = 0; id < tokenizer().n_vocab(); ++id)
      if (const auto bytes = tokenizer().token_bytes(id); bytes.size() == 1)
        ids[static_cast<unsigned char>(bytes[0])] = id;
    return ids;
  }();
  std::vector<int32_t> ids;
  for (const char c : text) {
    ids.push_back(of_byte[static_cast<unsigned char>(c)]);
    EXPECT_GE(ids.back(), 0) << "no token for byte " << static_cast<int>(static_cast<unsigned char>(c));
  }
  return ids;
}

struct Outcome {
  WholeChoice whole;
  std::vector<ReplyEvent> events;
};

Outcome run(const GenerationRequest& request, const std::vector<int32_t>& ids, bool length = false) {
  ChoiceStream stream(tokenizer(), request, 0);
  Outcome out;
  for (const int32_t id : ids) {
    if (stream.ended()) break;
    stream.push({.token = id, .logprob = -1}, out.events);
  }
  stream.finish(length, Json(), out.events);
  EXPECT_TRUE(stream.ended());
  ReplyCollector collector(1);
  int finishes = 0;
  for (const ReplyEvent& event : out.events) {
    EXPECT_EQ(finishes, 0) << "an event after the finish";
    finishes += event.kind == ReplyEvent::Kind::finish;
    EXPECT_FALSE(first_invalid_utf8(event.text).has_value()) << "half a character";
    collector.add(event);
  }
  EXPECT_EQ(finishes, 1);
  out.whole = collector.take()[0];
  return out;
}

// Same meaning from bytes and from tokens of any size.
WholeChoice both(const GenerationRequest& request, const std::string& text, bool length = false) {
  const WholeChoice a = run(request, byte_ids(text), length).whole;
  const WholeChoice b = run(request, tokenizer().encode(text), length).whole;
  EXPECT_EQ(a.content, b.content) << text;
  EXPECT_EQ(a.reasoning, b.reasoning) << text;
  EXPECT_EQ(a.calls.size(), b.calls.size()) << text;
  for (size_t i = 0; i < std::min(a.calls.size(), b.calls.size()); ++i)
    EXPECT_EQ(a.calls[i].arguments, b.calls[i].arguments);
  EXPECT_EQ(a.finish, b.finish) << text;
  return a;
}

TEST(ChoiceStream, T1_NeverHalfACharacter) {
  const std::string text = "Сказка: 🫠🥹龜 ";
  const Outcome out = run({}, byte_ids(text));
  EXPECT_EQ(out.whole.content, text);
  EXPECT_EQ(run({}, byte_ids(text.substr(0, text.size() - 2))).whole.content,
            text.substr(0, text.size() - 4) + "\xEF\xBF\xBD")
      << "an unfinished character shows at the very end only";
}

TEST(ChoiceStream, T3_AStrayByteLosesNoText) {
  for (const OutputFormat format : {OutputFormat::deepseek_dsml, OutputFormat::hermes, OutputFormat::llama3_json}) {
    const Outcome out = run(chat(format), byte_ids("First sentence. \x80Second sentence."));
    EXPECT_EQ(out.whole.content, "First sentence. \xEF\xBF\xBDSecond sentence.");
  }
}

TEST(ChoiceStream, S1_NothingOfAStopStringLeaves) {
  GenerationRequest request;
  request.stop = {" five six", "zz"};
  const Outcome out = run(request, byte_ids("three four five six seven"));
  EXPECT_EQ(out.whole.content, "three four");
  EXPECT_EQ(out.whole.stop_reason, Json(" five six"));
  size_t shown = 0;
  const std::string text = "three four five se";
  std::vector<ReplyEvent> events;
  ChoiceStream stream(tokenizer(), request, 0);
  for (const int32_t id : byte_ids(text)) {
    stream.push({.token = id}, events);
    for (const ReplyEvent& event : events) shown += event.text.size();
    events.clear();
  }
  EXPECT_EQ(shown, text.size()) << "what can no longer become a stop string is not held";
}

TEST(ChoiceStream, S2_StopStringsDoNotCutMarkers) {
  GenerationRequest plain = chat(OutputFormat::deepseek_dsml, OutputStart::reasoning), stopped = plain;
  stopped.stop = {"zq-never-occurs-zq", "<", "</th"};
  const std::string text = "hm, 1 < 2</think>Yes.";
  const WholeChoice a = both(plain, text), b = both(stopped, text);
  EXPECT_EQ(a.reasoning, "hm, 1 < 2");
  EXPECT_EQ(a.content, "Yes.");
  EXPECT_EQ(b.reasoning, a.reasoning);
  EXPECT_EQ(b.content, a.content);
  stopped.stop = {"es"};
  EXPECT_EQ(both(stopped, text).content, "Y") << "they act on the answer";
}

TEST(ChoiceStream, C3_CutAnywhereShowsNoMarkerAndNoHalfCall) {
  for (const OutputFormat format : {OutputFormat::deepseek_dsml, OutputFormat::hermes}) {
    const std::string text =
        "Sure." + (format == OutputFormat::hermes
                       ? "\n<tool_call>\n{\"name\": \"run\", \"arguments\": {\"cmd\": \"ls\"}}\n</tool_call>"
                       : dsml_call("ls"));
    const std::vector<int32_t> ids = byte_ids(text);
    for (size_t n = 1; n <= ids.size(); ++n) {
      const WholeChoice whole = run(chat(format), {ids.begin(), ids.begin() + static_cast<long>(n)}, true).whole;
      EXPECT_EQ(whole.finish, Finish::length);
      EXPECT_EQ(whole.content.substr(0, 5), text.substr(0, std::min<size_t>(n, 5)));
      EXPECT_EQ(whole.content.find('<'), std::string::npos) << n;
      for (const WholeCall& call : whole.calls) EXPECT_EQ(call.arguments, "{\"cmd\": \"ls\"}");
    }
  }
}

TEST(ChoiceStream, C4_ValuesKeepTheirLastCharacters) {
  for (const char* value : {"ls 2>&1", "a<", "</", "<｜", "", "<", "a</｜", "\"\\\n"}) {
    const WholeChoice whole = both(chat(OutputFormat::deepseek_dsml), dsml_call(value));
    ASSERT_EQ(whole.calls.size(), 1u) << value;
    const auto arguments = Json::parse(whole.calls[0].arguments);
    ASSERT_TRUE(arguments.has_value()) << whole.calls[0].arguments;
    EXPECT_EQ(*arguments->find("cmd"), Json(value));
    EXPECT_EQ(whole.finish, Finish::tool_calls);
  }
}

TEST(ChoiceStream, C6_ACallInsideThinkingIsACallOnce) {
  const WholeChoice whole =
      both(chat(OutputFormat::deepseek_dsml, OutputStart::reasoning), "I should look." + dsml_call("ls"));
  EXPECT_EQ(whole.reasoning, "I should look.");
  EXPECT_EQ(whole.content, "");
  ASSERT_EQ(whole.calls.size(), 1u);
}

TEST(ChoiceStream, C8_SeparatorsTakeLinearTime) {
  const auto seconds = [](OutputFormat format, const std::string& unit, size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += unit;
    const GenerationRequest request = chat(format);
    const std::vector<int32_t> ids = byte_ids(text);
    const auto start = std::chrono::steady_clock::now();
    (void)run(request, ids);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const std::pair<OutputFormat, std::string> cases[] = {{OutputFormat::deepseek_dsml, "<｜DSML｜ calls>"},
                                                        {OutputFormat::hermes, "<tool_call>"},
                                                        {OutputFormat::llama3_json, "{\"name\":;"}};
  for (const auto& [format, unit] : cases) {
    const double small = seconds(format, unit, 60'000), large = seconds(format, unit, 480'000);
    // Eight times the bytes: linear is 8, quadratic is 64. Half way in the exponent, for noise.
    EXPECT_LT(large, 24 * std::max(small, 1e-3)) << unit;
  }
}

TEST(ChoiceStream, OneCallWhereParallelCallsAreOff) {
  GenerationRequest request = chat(OutputFormat::hermes);
  request.output->parallel_calls = false;
  const std::string call = "<tool_call>{\"name\": \"run\", \"arguments\": {\"cmd\": \"a\"}}</tool_call>";
  const WholeChoice whole = run(request, byte_ids(call + call)).whole;
  EXPECT_EQ(whole.calls.size(), 1u);
  EXPECT_EQ(whole.finish, Finish::tool_calls);
}

TEST(ChoiceStream, LogprobsGoWithTheirText) {
  GenerationRequest request = chat(OutputFormat::deepseek_dsml, OutputStart::reasoning);
  request.sampling.top_logprobs = 0;
  request.stop = {"!!"};
  const std::string text = "hm</think>Yes.!! more";
  const Outcome out = run(request, byte_ids(text));
  const auto spelled = [](const std::vector<TokenLogprobs>& tokens) {
    std::string all;
    for (const TokenLogprobs& token : tokens) all += tokenizer().token_bytes(token.token);
    return all;
  };
  EXPECT_EQ(out.whole.content, "Yes.");
  EXPECT_EQ(spelled(out.whole.content_logprobs).substr(spelled(out.whole.content_logprobs).find('Y')), "Yes.");
  request.output.reset();
  const Outcome plain = run(request, byte_ids("aé!! b"));
  EXPECT_EQ(plain.whole.content, "aé");
  EXPECT_EQ(spelled(plain.whole.content_logprobs), "aé");
}

}  // namespace
}  // namespace gannet::server
