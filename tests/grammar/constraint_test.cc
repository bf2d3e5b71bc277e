#include "grammar/constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace gannet::grammar {
namespace {

// What may be done with a text, decided without any grammar engine.
struct Language {
  std::string source;                                 // EBNF
  std::function<bool(const std::string&)> is_prefix;  // some sentence begins so
  std::function<bool(const std::string&)> is_sentence;
};

// A vocabulary of every string of 1 or 2 letters of the alphabet, some longer ones, a byte of a split character, a
// control token and two ids that end a text.
struct TestVocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> ends;
  int32_t control = -1;
  Vocabulary vocabulary = make();

  Vocabulary make() {
    const std::string alphabet = "abc(),0129";
    for (const char a : alphabet) tokens.push_back({a});
    for (const char a : alphabet)
      for (const char b : alphabet) tokens.push_back({a, b});
    for (const char* longer : {"abc", "((a", "),(", "\xC3", "\xA9", "\xC3\xA9", "a\xC3", "\xA9z", "z"})
      tokens.push_back(longer);
    control = static_cast<int32_t>(tokens.size());
    tokens.push_back("");
    for (int i = 0; i < 2; ++i) {
      ends.push_back(static_cast<int32_t>(tokens.size()));
      tokens.push_back("");
    }
    auto made = Vocabulary::make(
        static_cast<int32_t>(tokens.size()) + 5,
        [&](int32_t id) -> std::string_view {
          if (id >= static_cast<int32_t>(tokens.size())) return {};
          return tokens[static_cast<size_t>(id)];
        },
        ends);
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }
  bool is_end(int32_t id) const { return id == ends[0] || id == ends[1]; }
};

bool prefix_of_any(const std::vector<std::string>& sentences, const std::string& text) {
  for (const std::string& s : sentences)
    if (s.starts_with(text)) return true;
  return false;
}

Language choices() {
  const std::vector<std::string> sentences = {"a", "abc", "ab(", "\xC3\xA9z", "019"};
  return {"root ::= \"a\" | \"abc\" | \"ab(\" | \"\xC3\xA9z\" | \"019\"\n",
          [=](const std::string& t) { return prefix_of_any(sentences, t); },
          [=](const std::string& t) { return std::ranges::find(sentences, t) != sentences.end(); }};
}

// [ab]{2,4}, then an odd number of digits.
Language regular() {
  const auto letters = [](const std::string& t) { return t.find_first_not_of("ab"); };
  const auto well_formed = [=](const std::string& t) {
    const size_t n = letters(t);
    if (n == std::string::npos) return t.size() <= 4;
    return n >= 2 && n <= 4 && t.find_first_not_of("0123456789", n) == std::string::npos;
  };
  return {"root ::= [ab]{2,4} digit (digit digit)*\ndigit ::= [0-9]\n", well_formed, [=](const std::string& t) {
            const size_t n = letters(t);
            return n != std::string::npos && well_formed(t) && (t.size() - n) % 2 == 1;
          }};
}

// Nested lists: "(" list ("," list)* ")" or a letter; also with an accented letter inside.
Language nested() {
  // Position after one list that begins at i; npos: wrong; text.size() + 1: the text ends inside it.
  struct Parser {
    const std::string& t;
    size_t list(size_t i) const {
      if (i == t.size()) return t.size() + 1;
      if (t[i] == 'a') return i + 1;
      if (t[i] == '\xC3') return i + 1 == t.size() ? t.size() + 1 : t[i + 1] == '\xA9' ? i + 2 : std::string::npos;
      if (t[i] != '(') return std::string::npos;
      for (++i;; ++i) {
        i = list(i);
        if (i == std::string::npos || i > t.size()) return i;
        if (i == t.size()) return t.size() + 1;
        if (t[i] == ')') return i + 1;
        if (t[i] != ',') return std::string::npos;
      }
    }
  };
  return {"root ::= list\nlist ::= \"a\" | \"\xC3\xA9\" | \"(\" list (\",\" list)* \")\"\n",
          [](const std::string& t) {
            const size_t end = Parser{t}.list(0);
            return end == t.size() || end == t.size() + 1;
          },
          [](const std::string& t) { return Parser{t}.list(0) == t.size(); }};
}

bool bit(const std::vector<uint32_t>& mask, int32_t id) {
  return mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1;
}

// Every bit of the mask against the language's definition.
void expect_mask(const TestVocabulary& v, const Language& language, const std::string& text, Matcher& matcher) {
  std::vector<uint32_t> mask(static_cast<size_t>(v.vocabulary.mask_words()), 0xAAAAAAAA);
  matcher.fill_mask(mask);
  for (int32_t id = 0; id < static_cast<int32_t>(mask.size()) * 32; ++id) {
    bool expected = false;
    if (id < static_cast<int32_t>(v.tokens.size()) && id != v.control)
      expected =
          v.is_end(id) ? language.is_sentence(text) : language.is_prefix(text + v.tokens[static_cast<size_t>(id)]);
    ASSERT_EQ(bit(mask, id), expected) << "id " << id << " after '" << text << "'";
  }
  ASSERT_EQ(matcher.may_end(), language.is_sentence(text)) << text;
}

// Random tokens, allowed or not, with rollbacks and forks between them.
void walk(const TestVocabulary& v, const Language& language, uint32_t seed) {
  std::mt19937 random(seed);
  const auto compiled = CompiledConstraint::from_ebnf(v.vocabulary, language.source);
  ASSERT_TRUE(compiled) << compiled.error().message;
  Matcher matcher(*compiled);
  std::vector<std::string> texts = {""};  // after each accepted token
  for (int step = 0; step < 300; ++step) {
    ASSERT_NO_FATAL_FAILURE(expect_mask(v, language, texts.back(), matcher));
    if (random() % 5 == 0) {
      const auto n = static_cast<int32_t>(random() % texts.size());
      matcher.rollback(n);
      texts.resize(texts.size() - static_cast<size_t>(n));
    }
    if (random() % 7 == 0) matcher = matcher.fork();
    const auto id = static_cast<int32_t>(random() % v.tokens.size());
    if (v.is_end(id) || id == v.control) continue;
    const std::string next = texts.back() + v.tokens[static_cast<size_t>(id)];
    ASSERT_EQ(matcher.accept(id), language.is_prefix(next)) << next;
    if (language.is_prefix(next)) texts.push_back(next);
    ASSERT_EQ(matcher.n_accepted(), static_cast<int32_t>(texts.size()) - 1);
  }
}

TEST(Constraint, MasksAreTheLanguage) {
  const TestVocabulary v;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    ASSERT_NO_FATAL_FAILURE(walk(v, choices(), seed));
    ASSERT_NO_FATAL_FAILURE(walk(v, regular(), seed));
    ASSERT_NO_FATAL_FAILURE(walk(v, nested(), seed));
  }
}

TEST(Constraint, EndsOnlyWhereTheLanguageMayAndTakesItBack) {
  const TestVocabulary v;
  const auto compiled = CompiledConstraint::from_ebnf(v.vocabulary, "root ::= \"ab\"+\n");
  ASSERT_TRUE(compiled);
  Matcher matcher(*compiled);
  EXPECT_FALSE(matcher.accept(v.ends[0]));
  ASSERT_TRUE(matcher.accept(0));
  EXPECT_EQ(matcher.forced_text(), "b");
  EXPECT_FALSE(matcher.accept(v.ends[1]));
  ASSERT_TRUE(matcher.accept(1));
  ASSERT_TRUE(matcher.accept(v.ends[1]));
  EXPECT_TRUE(matcher.ended());
  EXPECT_FALSE(matcher.accept(0));
  std::vector<uint32_t> mask(static_cast<size_t>(v.vocabulary.mask_words()), 1);
  matcher.fill_mask(mask);
  for (const uint32_t word : mask) EXPECT_EQ(word, 0u);
  matcher.rollback(2);
  EXPECT_EQ(matcher.forced_text(), "b");
  EXPECT_TRUE(matcher.accept(1));
}

TEST(Constraint, AForkGoesItsOwnWay) {
  const TestVocabulary v;
  const auto compiled = CompiledConstraint::from_choices(v.vocabulary, std::vector<std::string>{"ab", "ac"});
  ASSERT_TRUE(compiled);
  Matcher one(*compiled);
  ASSERT_TRUE(one.accept(0));
  Matcher two = one.fork();
  EXPECT_TRUE(one.accept(1));
  EXPECT_TRUE(two.accept(2));
  EXPECT_EQ(two.n_accepted(), 2);
}

TEST(Constraint, TextsOfAChoiceStandForThemselves) {
  std::vector<std::string> bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back({static_cast<char>(i)});
  bytes.push_back("");
  const auto vocabulary = Vocabulary::make(
      257, [&](int32_t id) -> std::string_view { return bytes[static_cast<size_t>(id)]; },
      std::vector<int32_t>{256});
  ASSERT_TRUE(vocabulary);
  const std::vector<std::string> texts = {"say \"x\\n\"", std::string("nul\0\n\t\x7f", 7),
                                          "caf\xC3\xA9 \xF0\x9F\x98\x80", "[a-z]* ::= |"};
  const auto compiled = CompiledConstraint::from_choices(*vocabulary, texts);
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const std::string& text : texts) {
    Matcher matcher(*compiled);
    for (const char c : text) ASSERT_TRUE(matcher.accept(static_cast<unsigned char>(c))) << text;
    EXPECT_TRUE(matcher.accept(256)) << text;
  }
}

TEST(Constraint, BadSourcesAreRefusedInASentence) {
  const TestVocabulary v;
  for (const char* bad :
       {"", "root ::= ", "rot ::= \"a\"", "root ::= missing", "root ::= [z-a]", "root ::= \"a\"{3,2}",
        "root ::= (\"a\"", "root ::= \"\\q\"", "root \"a\"", "root ::= \"a\"\nroot ::= \"b\"", "\xFF\xFE"}) {
    const auto compiled = CompiledConstraint::from_ebnf(v.vocabulary, bad);
    ASSERT_FALSE(compiled) << bad;
    EXPECT_EQ(compiled.error().code, Errc::bad_request);
    EXPECT_TRUE(compiled.error().message.starts_with("the grammar is not valid: ")) << compiled.error().message;
    EXPECT_EQ(compiled.error().message.find(".cc"), std::string::npos) << compiled.error().message;
  }
  EXPECT_FALSE(CompiledConstraint::from_choices(v.vocabulary, {}));
  EXPECT_FALSE(CompiledConstraint::from_choices(v.vocabulary, std::vector<std::string>{"\xC3"}));
  EXPECT_FALSE(Vocabulary::make(
      4, [](int32_t) { return "a"; }, std::vector<int32_t>{4}));
}

}  // namespace
}  // namespace gannet::grammar
