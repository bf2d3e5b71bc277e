#include "text/detokenizer.h"

#include "text/tokenizer_strings.h"

namespace gannet {
namespace {

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = testing::load_golden("tiny");
  return tokenizer;
}

std::string joined(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, DetokenizeOptions options = {}) {
  Detokenizer detokenizer(tokenizer, options);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = detokenizer.push(id);
    EXPECT_FALSE(first_invalid_utf8(piece).has_value());
    EXPECT_LE(detokenizer.pending().size(), 3u);
    text += piece;
  }
  return text + detokenizer.flush();
}

TEST(Detokenizer, PiecesAreWholeCharactersAndJoinToTheText) {
  const testing::Strings strings;
  for (const std::string name : {"tiny", "families/deepseek-v3.json", "families/llama-spm.json"}) {
    const Tokenizer tokenizer = testing::load_golden(name);
    for (uint64_t i = 0; i < 1000; ++i) {
      const auto ids = tokenizer.encode(strings.make(13, i));
      ASSERT_EQ(joined(tokenizer, ids), tokenizer.decode(ids)) << name << ' ' << i;
    }
  }
  const std::string text = "Сказка: 🫠🥹龜 ";
  EXPECT_EQ(joined(tiny(), tiny().encode(text)), text);
}

// One U+FFFD for each maximal subpart, as soon as it cannot become a character.
TEST(Detokenizer, IllFormedBytes) {
  const std::string r = "\xEF\xBF\xBD";
  Detokenizer detokenizer(tiny());
  EXPECT_EQ(detokenizer.push_bytes("a\xF0\x9F"), "a");
  EXPECT_EQ(detokenizer.pending(), "\xF0\x9F");
  EXPECT_EQ(detokenizer.push_bytes("b"), r + "b");
  EXPECT_EQ(detokenizer.push_bytes("\x80\xC0\xAF"), r + r + r);
  EXPECT_EQ(detokenizer.push_bytes("\xED\xA0\x80"), r + r + r);  // a surrogate is no character
  EXPECT_EQ(detokenizer.push_bytes("\xF0\x9F\xF0\x9F\x98\x80\xE2\x82"), r + "😀");
  EXPECT_EQ(detokenizer.flush(), r);
  EXPECT_EQ(detokenizer.flush(), "");
}

// Every split of every sequence of three bytes gives the text of the whole.
TEST(Detokenizer, AnySplitGivesTheSameText) {
  const unsigned char interesting[] = {'a',  0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2,
                                       0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  for (const unsigned char a : interesting)
    for (const unsigned char b : interesting)
      for (const unsigned char c : interesting) {
        const std::string bytes = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c),
                                   static_cast<char>(a)};
        Detokenizer whole(tiny()), parts(tiny());
        std::string want = whole.push_bytes(bytes);
        want += whole.flush();
        std::string got;
        for (const char byte : bytes) got += parts.push_bytes({&byte, 1});
        got += parts.flush();
        ASSERT_EQ(got, want);
        ASSERT_FALSE(first_invalid_utf8(got).has_value());
      }
}

TEST(Detokenizer, SpecialTokensAreLeftOutOrSpelled) {
  const std::vector<int32_t> ids = tiny().encode("<｜begin▁of▁sentence｜>a<think>b", {.parse_special = true});
  EXPECT_EQ(joined(tiny(), ids), "a<think>b");
  EXPECT_EQ(joined(tiny(), ids, {.skip_special = false}), "<｜begin▁of▁sentence｜>a<think>b");
  EXPECT_EQ(joined(tiny(), {-1, 5000, ids[1]}), "a");
}

// The blank in front of the first word goes only where a text begins.
TEST(Detokenizer, FirstBlank) {
  for (const std::string name : {"llama-spm", "metaspace"}) {
    const Tokenizer tokenizer = testing::load_golden("families/" + name + ".json");
    const auto ids = tokenizer.encode("the text");
    EXPECT_EQ(joined(tokenizer, ids), "the text") << name;
    EXPECT_EQ(joined(tokenizer, ids, {.text_start = false}), " the text") << name;
    std::vector<int32_t> with_bos = {*tokenizer.bos_id()};
    with_bos.insert(with_bos.end(), ids.begin(), ids.end());
    EXPECT_EQ(joined(tokenizer, with_bos), "the text") << name;
    Detokenizer twice(tokenizer);
    for (int i = 0; i < 2; ++i) {
      std::string text;
      for (const int32_t id : ids) text += twice.push(id);
      EXPECT_EQ(text + twice.flush(), "the text");
    }
  }
  const Tokenizer spm = testing::load_golden("families/llama-spm.json");
  EXPECT_EQ(spm.decode(spm.encode("  two")), "  two");
}

// <0xHH> tokens: characters as soon as they are whole, one U+FFFD for each byte that is part of none.
TEST(Detokenizer, ByteTokens) {
  const Tokenizer spm = testing::load_golden("families/llama-spm.json");
  const auto byte = [&](std::string_view hex) { return *spm.token_id("<0x" + std::string(hex) + ">"); };
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(joined(spm, {byte("E2"), byte("82"), byte("AC")}), "€");
  EXPECT_EQ(joined(spm, {byte("E2"), byte("82"), byte("41")}), r + r + "A");
  EXPECT_EQ(joined(spm, {byte("E2"), byte("82")}), r + r);
}

}  // namespace
}  // namespace gannet
