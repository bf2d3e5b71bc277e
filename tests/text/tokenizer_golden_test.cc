// Ids and texts of 20,000 strings for every family of components, against hashes of what the `tokenizers` library
// gives (tests/golden/tokenizer/make_golden.py).
#include "text/tokenizer_strings.h"

namespace gannet {
namespace {

using testing::RowHash;

// Stops at the first block of strings whose hash differs.
void check_family(const testing::Strings& strings, const Json& golden, const std::string& name, const Json& want) {
  const Tokenizer tokenizer = testing::load_golden(name == "tiny" ? "tiny" : "families/" + name + ".json");
  const auto seed = static_cast<uint64_t>(*golden.find("seed")->as_int());
  const int64_t count = *golden.find("count")->as_int(), per = *golden.find("per_hash")->as_int();
  ASSERT_EQ(want.find("template")->items().size(), static_cast<size_t>(count / per));
  for (int64_t block = 0; block < count / per; ++block) {
    RowHash template_hash, client_hash, decoded_hash;
    for (int64_t i = block * per; i < (block + 1) * per; ++i) {
      const std::string text = strings.make(seed, static_cast<uint64_t>(i));
      const auto ids = tokenizer.encode(text, {.add_special = true, .parse_special = true});
      template_hash.add(ids);
      client_hash.add(tokenizer.encode(text));
      decoded_hash.add(tokenizer.decode(ids));
    }
    const auto wanted = [&](std::string_view kind) {
      return *want.find(kind)->items()[static_cast<size_t>(block)].as_string();
    };
    EXPECT_EQ(template_hash.hex(), wanted("template")) << name << " block " << block;
    EXPECT_EQ(client_hash.hex(), wanted("client")) << name << " block " << block;
    EXPECT_EQ(decoded_hash.hex(), wanted("decoded")) << name << " block " << block;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(TokenizerGolden, EveryFamilyGivesTheIdsAndTextsOfTheOracle) {
  const testing::Strings strings;
  const auto golden = Json::parse(testing::read_golden("golden.json"));
  ASSERT_TRUE(golden.has_value());
  ASSERT_EQ(golden->find("families")->members().size(), 12u);
  for (const auto& [name, want] : golden->find("families")->members()) check_family(strings, *golden, name, want);
}

TEST(TokenizerGolden, ByteLevelTextComesBack) {
  const testing::Strings strings;
  for (const std::string name :
       {"tiny", "families/deepseek-v3.json", "families/gpt-2.json", "families/smollm.json"}) {
    const Tokenizer tokenizer = testing::load_golden(name);
    for (uint64_t i = 0; i < 2000; ++i) {
      const std::string text = strings.make(3, i);
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text), false), text) << name << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace gannet
