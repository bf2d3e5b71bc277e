#include "files/safetensors.h"

#include <gtest/gtest.h>

#include "files/json_scan.h"
#include "support/model_files.h"

namespace gannet::files {
namespace {

using test::fails_with;
using test::safetensors;
using test::SafetensorsWriter;
using test::TempDir;

Result<std::vector<TensorInfo>> parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "m.safetensors", 0);
}

std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return "{\"a\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":[" + std::string(shape) +
         "],\"data_offsets\":[" + std::string(offsets) + "]}}";
}

TEST(Safetensors, ReadsTensorsInAnyFieldOrder) {
  const std::string header =
      R"({"__metadata__":{"format":"pt","x":"y"}, "b" : { "shape":[2, 3],"data_offsets" :[4,16],"dtype":"BF16"},)"
      R"("é\n\u0041\ud83d\ude00":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},"s":{"dtype":"F32","shape":[],"data_offsets":[16,20]},)"
      R"("none":{"dtype":"I64","shape":[0,5],"data_offsets":[20,20]}}   )";
  const std::string file = safetensors(header, "0123456789abcdefwxyz");
  const auto tensors = parse(file);
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 4u);
  EXPECT_EQ((*tensors)[0].name, "b");
  EXPECT_EQ((*tensors)[0].type, StorageType::bf16);
  EXPECT_EQ((*tensors)[0].shape, (Shape{2, 3}));
  EXPECT_EQ(static_cast<char>((*tensors)[0].bytes[0]), '4');
  EXPECT_EQ((*tensors)[1].name, "é\nA😀");
  EXPECT_EQ((*tensors)[2].shape.rank, 0);
  EXPECT_EQ((*tensors)[2].bytes.size(), 4u);
  EXPECT_TRUE((*tensors)[3].bytes.empty());
}

TEST(Safetensors, AnUnknownTypeIsListedByName) {
  const std::string file = safetensors(entry("F4", "8", "0,4"), "1234");
  const auto tensors = parse(file);
  ASSERT_TRUE(tensors);
  EXPECT_EQ((*tensors)[0].type, StorageType::unsupported);
  EXPECT_EQ((*tensors)[0].type_text(), "F4");
  EXPECT_TRUE((*tensors)[0].bytes.empty());
}

TEST(Safetensors, RefusesTruncatedFiles) {
  const std::string whole = safetensors(entry("F32", "2", "0,8"), "12345678");
  ASSERT_TRUE(parse(whole));
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(parse(whole.substr(0, n))) << n;
  std::string shorter = whole;
  shorter.pop_back();
  EXPECT_TRUE(fails_with(parse(whole.substr(0, 5)), {"m.safetensors", "5 bytes"}));
  EXPECT_TRUE(fails_with(parse(whole.substr(0, 12)), {"m.safetensors", "claims"}));
  EXPECT_TRUE(fails_with(parse(shorter), {"\"a\"", "0 to 8", "payload of 7"}));
}

TEST(Safetensors, RefusesLyingHeaders) {
  const std::string payload = "12345678";
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {entry("F32", "2", "0,9"), {"\"a\"", "0 to 9", "8"}},
      {entry("F32", "2", "8,0"), {"\"a\"", "8 to 0"}},
      {entry("F32", "3", "0,8"), {"\"a\"", "F32", "[3]", "8 bytes"}},
      {entry("F32", "4294967296,4294967296", "0,8"), {"\"a\"", "impossible shape", "4294967296"}},
      {entry("F32", "9223372036854775807,2", "0,8"), {"\"a\"", "shape"}},
      {entry("F32", "18446744073709551615", "0,8"), {"\"a\"", "18446744073709551615"}},
      {entry("F32", "2305843009213693952", "0,8"), {"\"a\""}},  // times 4 leaves int64
      {entry("F32", "1,1,1,1,1,1,1,1,2", "0,8"), {"\"a\"", "dimensions"}},
      {entry("F32", "2", "0,18446744073709551616"), {"header"}},
      {entry("F32", "-2", "0,8"), {"header"}},
      {entry("F32", "2.0", "0,8"), {"header"}},
      {entry("F32", "02", "0,8"), {"header"}},
      {entry("F32", "1", "0,4"), {"payload has 8 bytes", "end at 4"}},
      {entry("F32", "1", "4,8"), {"0 to 4", "no tensor"}},
      {R"({"a":{"dtype":"F32","shape":[2]}})", {"\"a\"", "data_offsets"}},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", {"\"a\"", "dtype"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", {"\"a\"", "more"}},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", {"\"a\"", "dtype"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
       {"\"a\"", "twice"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       {"\"b\"", "overlaps"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x)", {"header"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", {"header"}},
      {R"([])", {"header"}},
      {"", {"header"}},
      {"{\"\xff\":1}", {"UTF-8"}},
      {R"({"\ud800":{}})", {"header"}},
      {R"({"__metadata__":)" + std::string(100, '[') + "}", {"header"}},
  };
  for (const auto& [header, words] : cases)
    EXPECT_TRUE(fails_with(parse(safetensors(header, payload)), words)) << header;
}

TEST(Safetensors, AHugeHeaderLengthCostsNothing) {
  EXPECT_TRUE(fails_with(parse(test::raw(UINT64_MAX) + "{}"), {"18446744073709551615"}));
  EXPECT_TRUE(fails_with(parse(test::raw(uint64_t{1} << 40) + "{}"), {"1099511627776"}));
}

TEST(SafetensorsSet, OpensAFileAFolderAndAnIndex) {
  TempDir dir;
  SafetensorsWriter one, two;
  one.add("a", "F32", {2}, "12345678");
  two.add("b", "U8", {3}, "abc");
  dir.write("x-1.safetensors", one.bytes());
  dir.write("x-2.safetensors", two.bytes());
  const auto single = SafeTensors::open(dir / "x-1.safetensors");
  ASSERT_TRUE(single) << single.error().message;
  EXPECT_NE(single->find("a"), nullptr);
  EXPECT_EQ(single->find("b"), nullptr);
  EXPECT_TRUE(fails_with(SafeTensors::open(dir.path()), {"2 .safetensors files", "index"}));
  dir.write("model.safetensors.index.json",
            R"({"metadata":{"total_size":11},"weight_map":{"b":"x-2.safetensors","a":"x-1.safetensors"}})");
  for (const auto& path : {dir.path(), dir / "model.safetensors.index.json"}) {
    const auto set = SafeTensors::open(path);
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_NE(set->find("b"), nullptr);
    EXPECT_EQ(static_cast<char>(set->find("b")->bytes[2]), 'c');
    EXPECT_EQ(set->payload_bytes(), 11);
    EXPECT_EQ(set->files().size(), 2u);
  }
}

TEST(SafetensorsSet, RefusesBrokenSets) {
  TempDir dir;
  SafetensorsWriter one, two;
  one.add("a", "F32", {2}, "12345678");
  two.add("b", "U8", {3}, "abc");
  dir.write("1.safetensors", one.bytes());
  dir.write("2.safetensors", two.bytes());
  const auto with_index = [&](std::string_view index) {
    dir.write("model.safetensors.index.json", index);
    return SafeTensors::open(dir.path());
  };
  EXPECT_TRUE(fails_with(with_index(R"({"weight_map":{"a":"1.safetensors","b":"3.safetensors"}})"),
                         {"3.safetensors", "missing"}));
  EXPECT_TRUE(fails_with(with_index(R"({"weight_map":{"a":"1.safetensors","b":"1.safetensors"}})"),
                         {"1.safetensors", "\"b\""}));
  EXPECT_TRUE(fails_with(with_index(R"({"weight_map":{"a":"2.safetensors","b":"1.safetensors"}})"), {"does not"}));
  EXPECT_TRUE(
      fails_with(with_index(R"({"weight_map":{"a":"../1.safetensors"}})"), {"\"a\"", "no plain file name"}));
  EXPECT_TRUE(fails_with(with_index(R"({"weight_map":{"a":"/etc/passwd"}})"), {"no plain file name"}));
  EXPECT_TRUE(
      fails_with(with_index(R"({"weight_map":{"a":"1.safetensors","a":"1.safetensors","b":"2.safetensors"}})"),
                 {"3 tensors", "2"}));
  EXPECT_TRUE(fails_with(with_index(R"({"weight_map":[]})"), {"index"}));
  EXPECT_TRUE(fails_with(with_index(R"({"x":{}})"), {"index"}));
  EXPECT_TRUE(fails_with(with_index("not json"), {"index"}));
  EXPECT_TRUE(fails_with(SafeTensors::open(dir / "no.safetensors"), {"no.safetensors"}));
  SafetensorsWriter again;
  again.add("a", "U8", {1}, "x");
  dir.write("2.safetensors", again.bytes());
  EXPECT_TRUE(fails_with(with_index(R"({"weight_map":{"a":"1.safetensors","a":"2.safetensors"}})"),
                         {"\"a\"", "1.safetensors", "2.safetensors"}));
  dir.write("2.safetensors", "short");
  EXPECT_TRUE(fails_with(with_index(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})"),
                         {"2.safetensors", "5 bytes"}));
  const TempDir empty;
  EXPECT_TRUE(fails_with(SafeTensors::open(empty.path()), {"no .safetensors file"}));
}

TEST(JsonScan, SkipsAnyValueAndNoMore) {
  for (const std::string_view text :
       {"1", "-1.5e+3", "true", "\"a\\\"b\"", "[]", "{}", "[1, {\"a\": [null]}, \"x\"]"}) {
    JsonScan scan(text);
    EXPECT_TRUE(scan.skip_value()) << text;
    EXPECT_TRUE(scan.at_end()) << text;
  }
  for (const std::string_view text :
       {"", "[", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{1:2}", "\"a", "\"\\x\"", "\"\n\"", ","}) {
    JsonScan scan(text);
    EXPECT_FALSE(scan.skip_value() && scan.at_end()) << text;
  }
  const std::string deep(100000, '[');
  EXPECT_FALSE(JsonScan(deep).skip_value());
}

}  // namespace
}  // namespace gannet::files
