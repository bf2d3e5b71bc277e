#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace gannet {
namespace {

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeAStop) {
  StopStrings stops({" five six"});
  EXPECT_EQ(stops.push("four"), "four");
  EXPECT_EQ(stops.push(" fiv"), "");
  EXPECT_EQ(stops.push("e s"), "");
  EXPECT_EQ(stops.push("even"), " five seven");
  EXPECT_EQ(stops.push(" five six seven"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("more"), "");
}

TEST(StopStrings, FlushShowsAnUnfinishedStop) {
  StopStrings stops({"END"});
  EXPECT_EQ(stops.push("xEN"), "x");
  EXPECT_EQ(stops.flush(), "EN");
  EXPECT_FALSE(stops.found());
}

// Naive: the whole text at once, the earliest match, at one place the longest that is complete there.
std::string naive(const std::string& text, const std::vector<std::string>& stops, bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {  // the stop that is complete first ends the text
    size_t at = std::string::npos, size = 0;
    for (const auto& stop : stops)
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0 && stop.size() > size) {
        at = end - stop.size();
        size = stop.size();
      }
    if (size > 0) return text.substr(0, at + (include ? size : 0));
  }
  return text;
}

TEST(StopStrings, ByteByByteEqualsTheNaiveCut) {
  std::mt19937 random(5);
  const auto word = [&](size_t most) {
    std::string text;
    for (size_t i = 0, n = 1 + random() % most; i < n; ++i) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int i = 0; i < 20000; ++i) {
    const std::string text = word(16);
    std::vector<std::string> stops;
    for (size_t n = random() % 4; n > 0; --n) stops.push_back(word(4));
    const bool include = random() % 2 == 0;
    StopStrings matcher(stops, include);
    std::string shown;
    for (const char c : text) shown += matcher.push({&c, 1});
    shown += matcher.flush();
    ASSERT_EQ(shown, naive(text, stops, include)) << text;
  }
}

TEST(StopStrings, CuttingDoesNotChangeTheShownText) {
  std::mt19937 random(6);
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += static_cast<char>('a' + random() % 3);
    const std::vector<std::string> stops{"abcab", "cc", "bab"};
    StopStrings whole(stops), pieces(stops);
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const size_t n = 1 + random() % 5;
      shown += pieces.push(std::string_view(text).substr(at, n));
      at += n;
    }
    shown += pieces.flush();
    std::string at_once = whole.push(text);
    at_once += whole.flush();
    ASSERT_EQ(shown, at_once) << text;
  }
}

}  // namespace
}  // namespace gannet
