// Prompts against independent encoders: tests/golden/chat/*.jsonl, made by the scripts beside them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <array>
#include <fstream>

#include "text/chat_deepseek_v41.h"
#include "text/chat_openai.h"

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

}  // namespace
}  // namespace gannet
