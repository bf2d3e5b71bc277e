#include "text/token_map.h"

#include "text/tokenizer_strings.h"

namespace gannet {
namespace {

// A byte-level tokenizer of whole tokens, without merges.
Tokenizer of_tokens(const std::vector<std::string>& tokens) {
  Json vocab = Json::object();
  for (size_t i = 0; i < tokens.size(); ++i) vocab.set(tokens[i], Json(static_cast<int64_t>(i)));
  const std::string file =
      R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},)"
      R"("model":{"type":"BPE","merges":[],"vocab":)" +
      vocab.dump() + "}}";
  auto tokenizer = Tokenizer::from_json(file);
  EXPECT_TRUE(tokenizer.has_value()) << (tokenizer ? "" : tokenizer.error().message);
  return std::move(*tokenizer);
}

TEST(EngramTokenMap, TextsThatDifferInCaseMarksWidthOrBlanksShareAnEntry) {
  const Tokenizer tokenizer = of_tokens({
      "The",                 // 0
      "the",                 // as 0
      "Ġthe",                // as 0: blanks at the ends go
      "ĠĠTHE",               // as 0
      "Ġ",                   // 1: a lone blank stays one
      "ĠĊĠ",                 // as 1: a run of blanks is one
      "Ċ",                   // as 1
      "caf\u00C3\u00A9",     // 2: "café" in the byte alphabet, as "cafe"
      "cafe",                // as 2
      "\u00E4",              // 3: half a character, known by its spelling
      "\u00E5",              // 4: another one
      "\u00CC\u0123",        // 5: the mark U+0301 alone: what is left is empty, so the text itself
      "<\uFF5Cx\uFF5C>",     // 6: outside the alphabet, so its own text; NFKC makes the bars ASCII
      "<|X|>",               // as 6
      "\u00EF\u00BC\u00A1",  // 7: "Ａ", full width, as "a"
      "A",                   // as 7
      "b\u0120c",            // 8: "b c"
      "B\u010A\u0120c",      // as 8
  });
  const auto map = engram_token_map(tokenizer, tokenizer.n_vocab(), 0);
  ASSERT_TRUE(map.has_value()) << map.error().message;
  EXPECT_EQ(map->compressed, (std::vector<int32_t>{0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8}));
  EXPECT_EQ(map->n_compressed, 9);
}

TEST(EngramTokenMap, EqualsTheOracle) {
  const auto golden = Json::parse(testing::read_golden("token_map.json"));
  ASSERT_TRUE(golden.has_value());
  for (const auto& [name, want] : golden->find("maps")->members()) {
    const Tokenizer tokenizer = testing::load_golden(name);
    const auto map = engram_token_map(tokenizer, static_cast<int32_t>(want.items().size()), 0);
    ASSERT_TRUE(map.has_value()) << map.error().message;
    for (size_t id = 0; id < want.items().size(); ++id)
      ASSERT_EQ(map->compressed[id], *want.items()[id].as_int()) << name << " id " << id;
  }
}

TEST(EngramTokenMap, RefusesAnotherCountAndOtherTokenizers) {
  const Tokenizer tiny = testing::load_golden("tiny");
  const auto map = engram_token_map(tiny, 320, 0);
  ASSERT_TRUE(map.has_value());
  EXPECT_TRUE(engram_token_map(tiny, 320, map->n_compressed).has_value());
  const auto wrong = engram_token_map(tiny, 320, 99092);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("99092"), std::string::npos);
  EXPECT_FALSE(engram_token_map(tiny, 321, 0).has_value());
  EXPECT_FALSE(engram_token_map(tiny, -1, 0).has_value());
  EXPECT_FALSE(engram_token_map(testing::load_golden("families/llama-spm.json"), 10, 0).has_value());
}

}  // namespace
}  // namespace gannet
