#include "files/gguf.h"

#include <gtest/gtest.h>

#include "support/model_files.h"

namespace gannet::files {
namespace {

using test::fails_with;
using test::GgufWriter;
using test::raw;

Result<Gguf> parse(const std::string& bytes) { return Gguf::parse(std::as_bytes(std::span(bytes)), "m.gguf"); }

GgufWriter small() {
  GgufWriter w;
  w.string("general.architecture", "llama");
  w.u32("n", 7);
  w.strings("tokens", {"a", "", "bc"});
  w.tensor("x", {3, 2}, 0, std::string(24, 'x'));
  w.tensor("q", {32}, 2, std::string(18, 'q'));
  return w;
}

TEST(Gguf, ReadsEveryTypeOfValue) {
  GgufWriter w;
  w.value("u8", 0, raw(uint8_t{200}));
  w.value("i8", 1, raw(int8_t{-3}));
  w.value("u16", 2, raw(uint16_t{60000}));
  w.value("i16", 3, raw(int16_t{-30000}));
  w.value("u32", 4, raw(uint32_t{4000000000}));
  w.value("i32", 5, raw(int32_t{-5}));
  w.value("f32", 6, raw(0.5f));
  w.value("bool", 7, raw(uint8_t{1}));
  w.value("string", 8, GgufWriter::text("hé"));
  w.value("u64", 10, raw(uint64_t{1} << 62));
  w.value("i64", 11, raw(int64_t{-9}));
  w.value("f64", 12, raw(0.25));
  w.value("big", 10, raw(UINT64_MAX));
  w.array<float>("floats", 6, {1.5f, -2});
  w.array<double>("doubles", 12, {3.5});
  w.array<int32_t>("ints", 5, {-1, 2});
  w.array<uint8_t>("bools", 7, {0, 1});
  w.array<uint64_t>("huge", 10, {UINT64_MAX});
  w.strings("strings", {"a", "", "bc"});
  w.array<uint32_t>("empty", 4, {});
  const std::string bytes = w.bytes();
  const auto g = parse(bytes);
  ASSERT_TRUE(g) << g.error().message;
  const auto as_int = [&](std::string_view key) { return g->value(key)->as_int(); };
  EXPECT_EQ(as_int("u8"), 200);
  EXPECT_EQ(as_int("i8"), -3);
  EXPECT_EQ(as_int("u16"), 60000);
  EXPECT_EQ(as_int("i16"), -30000);
  EXPECT_EQ(as_int("u32"), 4000000000);
  EXPECT_EQ(as_int("i32"), -5);
  EXPECT_EQ(as_int("u64"), int64_t{1} << 62);
  EXPECT_EQ(as_int("i64"), -9);
  EXPECT_EQ(as_int("big"), std::nullopt);
  EXPECT_EQ(as_int("f32"), std::nullopt);
  EXPECT_EQ(as_int("bool"), std::nullopt);
  EXPECT_EQ(g->value("f32")->as_double(), 0.5);
  EXPECT_EQ(g->value("f64")->as_double(), 0.25);
  EXPECT_EQ(g->value("i8")->as_double(), -3.0);
  EXPECT_EQ(g->value("bool")->as_bool(), true);
  EXPECT_EQ(g->value("u8")->as_bool(), std::nullopt);
  EXPECT_EQ(g->value("string")->as_string(), "hé");
  EXPECT_EQ(g->value("floats")->as_floats(), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(g->value("doubles")->as_floats(), (std::vector<float>{3.5f}));
  EXPECT_EQ(g->value("ints")->as_ints(), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(g->value("bools")->as_ints(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(g->value("huge")->as_ints(), std::nullopt);
  EXPECT_EQ(g->value("floats")->as_ints(), std::nullopt);
  EXPECT_EQ(g->value("strings")->as_strings(), (std::vector<std::string_view>{"a", "", "bc"}));
  EXPECT_EQ(g->value("ints")->as_strings(), std::nullopt);
  EXPECT_EQ(g->value("empty")->as_ints()->size(), 0u);
  EXPECT_EQ(g->value("absent"), nullptr);
  EXPECT_TRUE(fails_with(g->get_int("absent"), {"m.gguf", "lacks", "absent"}));
  EXPECT_TRUE(fails_with(g->get_int("string"), {"string", "integer"}));
  EXPECT_TRUE(fails_with(g->get_string("u8"), {"u8", "uint8"}));
}

TEST(Gguf, ReadsTensorsOfBothVersions) {
  for (const uint32_t version : {2u, 3u}) {
    GgufWriter w = small();
    w.version = version;
    w.tensor("iq", {256}, 16, std::string(66, 'i'));
    const std::string bytes = w.bytes();
    const auto g = parse(bytes);
    ASSERT_TRUE(g) << g.error().message;
    EXPECT_EQ(g->version(), version);
    ASSERT_NE(g->find("x"), nullptr);
    EXPECT_EQ(g->find("x")->shape, (Shape{2, 3}));  // the file has the innermost first
    EXPECT_EQ(g->find("x")->bytes.size(), 24u);
    EXPECT_EQ(static_cast<char>(g->find("q")->bytes[17]), 'q');
    EXPECT_EQ(g->find("q")->type, StorageType::q4_0);
    EXPECT_EQ(g->find("iq")->type, StorageType::unsupported);
    EXPECT_EQ(g->find("iq")->type_text(), "IQ2_XXS");
    EXPECT_EQ(g->payload_bytes(), 42);
  }
}

TEST(Gguf, HonoursAnotherAlignment) {
  GgufWriter w;
  w.alignment = 128;
  w.u32("general.alignment", 128);
  w.tensor("a", {1}, 0, "1234");
  w.tensor("b", {1}, 0, "5678");
  const std::string bytes = w.bytes();
  const auto g = parse(bytes);
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(static_cast<char>(g->find("b")->bytes[0]), '5');
  for (const uint32_t bad : {0u, 3u, 48u, 0x80000000u}) {
    GgufWriter x;
    x.u32("general.alignment", bad);
    EXPECT_TRUE(fails_with(parse(x.bytes()), {"general.alignment"})) << bad;
  }
}

TEST(Gguf, RefusesEveryTruncation) {
  const std::string whole = small().bytes();
  ASSERT_TRUE(parse(whole));
  // The padding after the last tensor is not needed.
  for (size_t n = 0; n + 14 < whole.size(); ++n) EXPECT_FALSE(parse(whole.substr(0, n))) << n;
}

TEST(Gguf, RefusesLies) {
  const auto broken = [](auto change) {
    GgufWriter w = small();
    change(w);
    return parse(w.bytes());
  };
  EXPECT_TRUE(fails_with(parse("GGML...."), {"GGUF"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.version = 1; }), {"version 1"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.version = 0x03000000; }), {"big-endian"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.extra_values = 1; }), {}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.extra_tensors = 1; }), {}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.extra_tensors = int64_t{1} << 50; }), {"cannot fit"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.extra_values = int64_t{1} << 50; }), {"cannot fit"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.u32("n", 8); }), {"\"n\"", "twice"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.value("t", 13, ""); }), {"\"t\"", "type 13"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.value("b", 7, raw(uint8_t{2})); }), {"\"b\"", "bool"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.value("s", 8, raw(uint64_t{1} << 40)); }), {"\"s\"", "cut off"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.value("a", 9, raw(uint32_t{4}) + raw(uint64_t{1} << 60)); }),
                         {"\"a\"", "elements"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.value("a", 9, raw(uint32_t{8}) + raw(uint64_t{3})); }), {"\"a\""}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.value("a", 9, raw(uint32_t{9}) + raw(uint64_t{1})); }),
                         {"\"a\"", "array of type 9"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.tensor("x", {1}, 0, "1234"); }), {"\"x\"", "twice"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) {
                           w.tensor("y", {1, 1, 1, 1, 1}, 0, "1234");
                         }),
                         {"\"y\"", "5 dimensions"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) {
                           w.tensor("y", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, "1234");
                         }),
                         {"\"y\"", "impossible shape"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.tensor("y", {uint64_t{1} << 61}, 0, "1234"); }),
                         {"\"y\"", "does not fit"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.tensor("y", {UINT64_MAX}, 0, "1234"); }),
                         {"\"y\"", "18446744073709551615"}));
  EXPECT_TRUE(
      fails_with(broken([](auto& w) { w.tensor("y", {33}, 2, std::string(36, 'q')); }), {"\"y\"", "blocks of 32"}));
  EXPECT_TRUE(
      fails_with(broken([](auto& w) { w.tensor("y", {1}, 0, "1234", 1 << 20); }), {"\"y\"", "does not fit"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.tensor("y", {1}, 0, "1234", 4); }), {"\"y\"", "alignment"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.tensor("y", {1}, 0, "1234", 0); }), {"\"x\"", "\"y\"", "overlap"}));
  EXPECT_TRUE(fails_with(broken([](auto& w) { w.u32("split.count", 3); }), {"split.count", "3"}));
  const auto unknown = broken([](auto& w) { w.tensor("y", {1}, 999, "1234"); });
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->find("y")->type_text(), "ggml type 999");
}

TEST(Gguf, OpensAFile) {
  test::TempDir dir;
  dir.write("m.gguf", small().bytes());
  const auto g = Gguf::open(dir / "m.gguf");
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->get_int("n").value(), 7);
  EXPECT_FALSE(Gguf::open(dir / "none.gguf"));
  EXPECT_FALSE(Gguf::open(dir.path()));
}

}  // namespace
}  // namespace gannet::files
