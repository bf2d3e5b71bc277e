#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace gannet {
namespace {

Json must(std::string_view text) {
  auto json = Json::parse(text);
  EXPECT_TRUE(json) << text << ": " << (json ? "" : json.error().message);
  return json ? *json : Json();
}

TEST(Json, KeepsOrderAndSpelling) {
  for (const std::string_view text : {R"({"b":1.50,"a":[1e3,-0,0.10,12345678901234567890123],"c":{}})", "[]", "{}",
                                      R"("x")", "null", "true", "-12.5e-3", R"([[],{"":""},[null,false]])"})
    EXPECT_EQ(must(text).dump(), text);
  EXPECT_EQ(must(" [ 1 , 2 ] \n").dump(), "[1,2]");
  EXPECT_EQ(must(R"({"a":1,"b":2,"a":3})").dump(), R"({"a":3,"b":2})");  // first place, last value
}

TEST(Json, StringsAndEscapes) {
  EXPECT_EQ(*must(R"("a\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00")").as_string(), "a\"\\/\b\f\n\r\tAé😀");
  EXPECT_EQ(Json(std::string_view("\x01\x0b\x1f\x7f\"\\\n/é😀", 14)).dump(),
            "\"\\u0001\\u000b\\u001f\x7f\\\"\\\\\\n/é😀\"");
  EXPECT_EQ(Json(std::string("a\0b", 3)).dump(), R"("a\u0000b")");
  EXPECT_EQ(must(R"("a\u0000b")").as_string()->size(), 3u);
  // Each invalid subpart becomes one replacement character.
  EXPECT_EQ(Json("a\xffz").dump(), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(Json("\xE2\x82").dump(), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(Json("\xED\xA0\x80").dump(), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(Json, RefusesWhatTheStandardRefuses) {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "[1,]",
                                      "[1 2]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{a:1}",
                                      "{'a':1}",
                                      "01",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "-",
                                      "1e",
                                      "NaN",
                                      "Infinity",
                                      "tru",
                                      "nulll",
                                      "[1]]",
                                      "[1] x",
                                      "1 2",
                                      "\"a",
                                      "\"\x01\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"\xff\"",
                                      "\"\xED\xA0\x80\"",
                                      "[\"a\",]",
                                      "{\"a\":1,}",
                                      "[,1]",
                                      "/* */ 1",
                                      "[01]",
                                      "[1.]",
                                      "[truex]",
                                      "[\"a\"\"b\"]",
                                      "{\"a\":1 \"b\":2}"})
    EXPECT_FALSE(Json::parse(text)) << text;
  const auto error = Json::parse("[1, x]");
  ASSERT_FALSE(error);
  EXPECT_NE(error.error().message.find("byte"), std::string::npos);
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(Json::parse(nested(128)));
  EXPECT_FALSE(Json::parse(nested(129)));
  EXPECT_TRUE(Json::parse(nested(5), 5));
  EXPECT_FALSE(Json::parse(nested(6), 5));
  EXPECT_FALSE(Json::parse(nested(3000000)));
  EXPECT_FALSE(Json::parse(std::string(3000000, '[')));
  std::string objects;
  for (int i = 0; i < 200000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(Json::parse(objects));
}

TEST(Json, Numbers) {
  EXPECT_EQ(must("9223372036854775807").as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(must("-9223372036854775808").as_int(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(must("9223372036854775808").as_int(), std::nullopt);
  EXPECT_EQ(must("3.0").as_int(), 3);
  EXPECT_EQ(must("3e2").as_int(), 300);
  EXPECT_EQ(must("3.5").as_int(), std::nullopt);
  EXPECT_EQ(must("1e300").as_int(), std::nullopt);
  EXPECT_EQ(must("1e400").as_double(), std::nullopt);
  EXPECT_EQ(must("1e-400").as_double(), 0.0);
  EXPECT_EQ(must("1e-20").as_double(), 1e-20);
  EXPECT_EQ(must("true").as_int(), std::nullopt);
  EXPECT_EQ(must("\"1\"").as_double(), std::nullopt);
  EXPECT_EQ(Json(0.1).dump(), "0.1");
  EXPECT_EQ(Json(-0.0).dump(), "-0");
  EXPECT_EQ(Json(uint64_t{18446744073709551615u}).dump(), "18446744073709551615");
}

// Expected texts are json.dumps(json.loads(x), ensure_ascii=False) of Python 3.11.
TEST(Json, SpellsAsPythonDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"[1,2.0,1e3,1E16,1e15,0.0001,0.00001,1.50,-0.0,-0,123456789012345678901234567890]",
       "[1, 2.0, 1000.0, 1e+16, 1000000000000000.0, 0.0001, 1e-05, 1.5, -0.0, 0, 123456789012345678901234567890]"},
      {"[1e22,1.7976931348623157e308,5e-324,1e400,-1e400,1e-400,3.14159,100.0,12345.678e-3]",
       "[1e+22, 1.7976931348623157e+308, 5e-324, Infinity, -Infinity, 0.0, 3.14159, 100.0, 12.345678]"},
      {R"({"a":{"b":[]},"é":"\u00e9\n\u007f\/"})", "{\"a\": {\"b\": []}, \"é\": \"é\\n\x7f/\"}"}};
  for (const auto& [text, want] : cases) EXPECT_EQ(must(text).dump_python(), want);
}

TEST(Json, EditsInPlace) {
  Json json = Json::object();
  json.set("a", 1);
  json.set("b", Json::array()).push("x");
  json.set("a", 2.5);
  EXPECT_EQ(json.dump(), R"({"a":2.5,"b":["x"]})");
  EXPECT_EQ(json.find("c"), nullptr);
  EXPECT_EQ(Json(3).find("a"), nullptr);
  EXPECT_TRUE(Json(3).items().empty());
}

TEST(Json, ALargeFlatObjectIsFast) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i)
    text += (i > 0 ? ",\"key" : "\"key") + std::to_string(i) + "\":" + std::to_string(i);
  const Json json = must(text + "}");
  EXPECT_EQ(json.members().size(), 200000u);
  EXPECT_EQ(json.members()[199999].second.as_int(), 199999);
}

}  // namespace
}  // namespace gannet
