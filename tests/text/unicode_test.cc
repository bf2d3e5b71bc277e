#include "text/unicode.h"

#include <gtest/gtest.h>

#include <chrono>

#include "text/byte_alphabet.h"
#include "text/normalizer.h"

namespace gannet {
namespace {

TEST(Unicode, EveryCodePointRoundTrips) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const Char there = char_at(text.data(), text.data() + text.size());
    ASSERT_EQ(there.code_point, c);
    ASSERT_EQ(there.size, text.size());
    ASSERT_EQ(char_before(text.data(), text.data() + text.size()).code_point, c);
  }
}

TEST(Unicode, White_Space) {
  int n = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    n += char_at(text.data(), text.data() + text.size()).is(kSpace) ? 1 : 0;
  }
  EXPECT_EQ(n, 25);  // PropList.txt: White_Space
}

TEST(Unicode, NormalForms) {
  EXPECT_EQ(normalized("e\u0301", NormalForm::nfc), "é");
  EXPECT_EQ(normalized("é", NormalForm::nfd), "e\u0301");
  EXPECT_EQ(normalized("ﬁ①", NormalForm::nfkc), "fi1");
  EXPECT_EQ(normalized("\u1100\u1161\u11a8", NormalForm::nfc), "각");
  EXPECT_EQ(normalized("a\u0323\u0302", NormalForm::nfc), "\u1EAD");
  EXPECT_EQ(normalized("a\u0302\u0323", NormalForm::nfc), "\u1EAD");     // marks are put in order first
  EXPECT_EQ(normalized("e\xFF\u0301", NormalForm::nfc), "e\xFF\u0301");  // an ill-formed byte stands between
  EXPECT_EQ(normalized("e\U0001E2AE\u0301", NormalForm::nfc), "e\U0001E2AE\u0301");  // so does a mark of Unicode 14
  EXPECT_EQ(normalized("\u32FF", NormalForm::nfkc), "\u32FF");  // Unicode 12.1
}

// Marks in the wrong order are sorted, not bubbled.
TEST(Unicode, TextOfMarksIsNotQuadratic) {
  std::string marks = "a";
  for (int i = 0; i < 200'000; ++i) marks += i % 2 == 0 ? "\u0301" : "\u0323";
  const auto start = std::chrono::steady_clock::now();
  const std::string sorted = normalized(marks, NormalForm::nfd);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(sorted.size(), marks.size());
  EXPECT_EQ(sorted.substr(0, 5), "a\u0323\u0323");
  EXPECT_EQ(sorted.substr(sorted.size() - 4), "\u0301\u0301");
}

TEST(Unicode, Lower) {
  std::string out;
  for (const char32_t c : {U'A', U'É', U'İ', U'Σ', U'ß', U'ẞ', U'1'}) append_lower(out, c);
  EXPECT_EQ(out, "aéi\u0307σßß1");
}

TEST(ByteAlphabet, BothWays) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  const std::string token = bytes_to_alphabet(all);
  EXPECT_EQ(bytes_from_alphabet(token), all);
  EXPECT_EQ(bytes_to_alphabet(" \n\t\r"), "ĠĊĉč");
  for (const std::string_view outside : {" ", "a b", "｜", "ń\u0144", "\xC4", "世"})
    EXPECT_EQ(bytes_from_alphabet(outside), std::nullopt) << outside;
}

// A rewritten byte is the client's as soon as one byte of its source is.
TEST(Normalizer, Owners) {
  using Step = Normalizer::Step;
  OwnedText border{">\u0338e\u0301", std::string("\0\1\1\1\1\1", 6)};  // no mark reaches over to another owner
  Normalizer::from_steps({{.kind = Step::Kind::form}}).apply(border);
  EXPECT_EQ(border.text, ">\u0338é");
  EXPECT_EQ(border.client, std::string("\0\1\1\1\1", 5));
  OwnedText text{"e\u0301 xy", std::string("\1\1\1\0\0\1", 6)};
  Normalizer::from_steps({{.kind = Step::Kind::form}}).apply(text);
  EXPECT_EQ(text.text, "é xy");
  EXPECT_EQ(text.client, std::string("\1\1\0\0\1", 5));
  Normalizer::from_steps({{.kind = Step::Kind::replace, .pattern = " x", .content = "-----"}}).apply(text);
  EXPECT_EQ(text.text, "é-----y");
  EXPECT_EQ(text.client, std::string("\1\1\0\0\0\0\0\1", 8));
  Normalizer::from_steps({{.kind = Step::Kind::prepend, .content = "<<"}}).apply(text);
  EXPECT_EQ(text.text, "<<é-----y");
  EXPECT_EQ(text.client, std::string("\1\1\1\1\0\0\0\0\0\1", 10));
}

}  // namespace
}  // namespace gannet
