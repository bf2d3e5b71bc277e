// Prompts against independent encoders: tests/golden/chat/*.jsonl, made by the scripts beside them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <array>
#include <ctime>
#include <fstream>
#include <sstream>

#include "text/chat_deepseek_v41.h"
#include "text/chat_openai.h"
#include "text/template.h"

namespace gannet {
namespace {

std::string sha256(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

// Control tokens in the text that the template owns.
int64_t count_control_tokens(const EncodedChat& chat) {
  constexpr std::array<std::string_view, 10> kTokens{"<｜begin▁of▁sentence｜>",
                                                     "<｜end▁of▁sentence｜>",
                                                     "<｜System｜>",
                                                     "<｜User｜>",
                                                     "<｜Assistant｜>",
                                                     "<｜latest_reminder｜>",
                                                     "<think>",
                                                     "</think>",
                                                     "｜DSML｜",
                                                     "<｜deepseek_image｜>"};
  int64_t n = 0;
  for (const TextSpan& span : chat.spans) {
    if (span.owner != TextSpan::Owner::template_owned) continue;
    for (const std::string_view token : kTokens)
      for (size_t at = span.text.find(token); at != std::string::npos;
           at = span.text.find(token, at + token.size()))
        ++n;
  }
  return n;
}

TEST(ChatGolden, DeepseekV41EqualsDeepseekRecipe) {
  std::ifstream file(GANNET_SOURCE_DIR "/tests/golden/chat/deepseek_v41.jsonl");
  ASSERT_TRUE(file);
  const auto encoder = make_deepseek_v41_encoder();
  int n = 0, n_different = 0;
  for (std::string line; std::getline(file, line); ++n) {
    const auto json = Json::parse(line);
    ASSERT_TRUE(json) << n;
    const auto conversation = conversation_from_openai(*json->find("request"));
    ASSERT_TRUE(conversation) << n << ": " << conversation.error().message;
    const auto encoded = encoder->encode(*conversation);
    ASSERT_TRUE(encoded) << n << ": " << encoded.error().message;
    const std::string text = encoded->text();
    if (const Json* prompt = json->find("prompt")) {
      EXPECT_EQ(text, *prompt->as_string()) << "line " << n + 1;
    }
    const bool same = sha256(text) == *json->find("sha256")->as_string();
    if (!same && n_different++ < 5)
      ADD_FAILURE() << "line " << n + 1 << "\n" << json->find("request")->dump() << "\n" << text;
    EXPECT_EQ(count_control_tokens(*encoded), *json->find("n_special")->as_int()) << "line " << n + 1;
  }
  EXPECT_GE(n, 1000);
  EXPECT_EQ(n_different, 0) << "of " << n;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The rendered text, or nothing where the template is refused or refuses.
std::optional<std::string> rendered(const std::string& source, const Json& variables) {
  const auto chat = Template::parse(source);
  if (!chat) return std::nullopt;
  std::vector<TemplateVariable> list;
  for (const auto& [name, value] : variables.members()) list.push_back({name, value});
  const auto spans = chat->render(list, std::time(nullptr));
  if (!spans) return std::nullopt;
  std::string text;
  for (const TextSpan& span : *spans) text += span.text;
  return text;
}

TEST(ChatGolden, TemplatesEqualJinja2) {
  const std::string folder = GANNET_SOURCE_DIR "/tests/golden/chat/";
  std::ifstream file(folder + "templates.jsonl");
  ASSERT_TRUE(file);
  Json context = Json::object();
  int n = 0;
  for (std::string line; std::getline(file, line);) {
    const auto json = Json::parse(line);
    ASSERT_TRUE(json) << line;
    if (const Json* shared = json->find("context")) {
      context = *shared;
      continue;
    }
    ++n;
    const Json* name = json->find("file");
    const std::string source = name != nullptr ? file_text(folder + "templates/" + *name->as_string())
                                               : *json->find("template")->as_string();
    const auto got = rendered(source, name != nullptr ? *json->find("variables") : context);
    const Json* want = json->find("want");
    const std::string what = name != nullptr ? *name->as_string() + " " + *json->find("case")->as_string() : source;
    EXPECT_EQ(got.has_value(), want != nullptr) << what << " gave " << got.value_or("nothing");
    if (got && want != nullptr) {
      EXPECT_EQ(*got, *want->as_string()) << what;
    }
  }
  EXPECT_GE(n, 450);
}

}  // namespace
}  // namespace gannet
