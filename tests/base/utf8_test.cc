#include "base/utf8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gannet {
namespace {

TEST(Utf8, FirstInvalidByte) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("aé世😀\U0010FFFF"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8(std::string_view("a\0b", 3)), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ab\x80"), 2u);
  EXPECT_EQ(first_invalid_utf8("é\xE4\xB8"), 2u);         // cut off
  EXPECT_EQ(first_invalid_utf8("\xC0\x80"), 0u);          // overlong
  EXPECT_EQ(first_invalid_utf8("\xED\xA0\x80"), 0u);      // surrogate
  EXPECT_EQ(first_invalid_utf8("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
}

// Every sequence of up to four bytes out of the edges of the ranges, against the definition: the encodings of all
// code points, and what is a proper front of one.
TEST(Utf8, StepsAgreeWithTheListOfAllEncodings) {
  std::vector<std::string> encodings;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    append_utf8(encodings.emplace_back(), c);
  }
  std::sort(encodings.begin(), encodings.end());      // as unsigned bytes, which is how std::string compares
  const auto fronts = [&](const std::string& text) {  // does any encoding begin with `text`?
    const auto at = std::lower_bound(encodings.begin(), encodings.end(), text);
    return at != encodings.end() && at->starts_with(text);
  };
  const std::string bytes =
      "\x01\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF";
  for (size_t n = 1; n <= 4; ++n) {
    std::vector<size_t> at(n, 0);
    for (bool more = true; more;) {
      std::string text;
      for (const size_t i : at) text += bytes[i];
      size_t front = 0;  // the longest front of `text` that an encoding has, or is
      while (front < n && fronts(text.substr(0, front + 1)) &&
             !(front > 0 && std::binary_search(encodings.begin(), encodings.end(), text.substr(0, front))))
        ++front;
      const bool character =
          front > 0 && std::binary_search(encodings.begin(), encodings.end(), text.substr(0, front));
      const Utf8Step step = utf8_step(text.data(), text.data() + n);
      using Kind = Utf8Step::Kind;
      const Kind want = character ? Kind::character : front == n ? Kind::truncated : Kind::ill_formed;
      ASSERT_EQ(static_cast<int>(step.kind), static_cast<int>(want)) << testing::PrintToString(text);
      ASSERT_EQ(step.size, std::max<size_t>(front, 1)) << testing::PrintToString(text);
      more = false;
      for (size_t i = 0; i < n && !more; ++i) {
        more = ++at[i] < bytes.size();
        if (!more) at[i] = 0;
      }
    }
  }
}

TEST(Utf8, PrefixEndsBetweenCharacters) {
  const std::string text = "aé世😀";  // 1, 2, 3 and 4 bytes
  const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t n = 0; n < std::size(want); ++n) EXPECT_EQ(utf8_prefix(text, n).size(), want[n]) << n;
}

TEST(Utf8, UnfinishedBytes) {
  const std::string text = "aé世😀";
  const size_t want[] = {0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0};
  for (size_t n = 0; n < std::size(want); ++n) EXPECT_EQ(utf8_unfinished_bytes(text.substr(0, n)), want[n]) << n;
  EXPECT_EQ(utf8_unfinished_bytes("\x80\x80\x80"), 0u);
  EXPECT_EQ(utf8_unfinished_bytes("\xED\xA0"), 0u);  // no character begins so
  EXPECT_EQ(utf8_unfinished_bytes("\xFF"), 0u);
}

}  // namespace
}  // namespace gannet
