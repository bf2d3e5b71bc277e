#include "text/chat_openai.h"

#include <gtest/gtest.h>

#include "text/chat_effort.h"
#include "text/chat_encoder.h"

namespace gannet {
namespace {

Result<Conversation> read(std::string_view text, const ChatDefaults& defaults = {}) {
  return conversation_from_openai(*Json::parse(text), defaults);
}
std::string error(std::string_view text) {
  const auto conversation = read(text);
  return conversation ? "accepted" : conversation.error().message;
}
std::string request(std::string_view messages, std::string_view more = "") {
  return R"({"messages":)" + std::string(messages) + std::string(more) + "}";
}
constexpr std::string_view kUser = R"([{"role":"user","content":"q"}])";

TEST(ChatOpenai, ErrorsNameTheField) {
  EXPECT_EQ(error("[]"), "request: expected an object");
  EXPECT_EQ(error("{}"), "messages: is required");
  EXPECT_EQ(error(request("[]")), "messages: holds no message");
  EXPECT_EQ(error(request("5")), "messages: expected an array, got a number");
  EXPECT_EQ(error(request("[5]")), "messages[0]: expected an object, got a number");
  EXPECT_EQ(error(request(R"([{"content":"x"}])")), "messages[0].role: is required");
  EXPECT_EQ(error(request(R"([{"role":"boss","content":"x"}])")),
            "messages[0].role: 'boss' is none of system, developer, user, assistant, tool, latest_reminder");
  EXPECT_EQ(error(request(R"([{"role":"user"}])")), "messages[0].content: is required");
  EXPECT_EQ(error(request(R"([{"role":"user","content":7}])")),
            "messages[0].content: expected a string or an array, got a number");
  EXPECT_EQ(error(request(R"([{"role":"user","content":["x"]}])")),
            "messages[0].content[0]: expected an object, got a string");
  EXPECT_EQ(error(request(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"video"}]}])")),
            "messages[0].content[1].type: content of type 'video' is not supported");
  EXPECT_EQ(error(request(R"([{"role":"user","content":[{"type":"text"}]}])")),
            "messages[0].content[0].text: is required");
  EXPECT_EQ(error(request(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":1}}]}])")),
            "messages[0].content[0].image_url.url: expected a string, got a number");
  EXPECT_EQ(error(request(
                R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":"huge"}}]}])")),
            "messages[0].content[0].image_url.detail: 'huge' is none of low, high, auto, original");
  EXPECT_EQ(error(request(R"([{"role":"user","content":"q"},{"role":"tool","content":"x"}])")),
            "messages[1].tool_call_id: is required");
  EXPECT_EQ(error(request(R"([{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{}]}])")),
            "messages[1].tool_calls[0].function: expected an object");
  EXPECT_EQ(
      error(request(
          R"([{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":3}}]}])")),
      "messages[1].tool_calls[0].function.arguments: expected a string or an object, got a number");
  EXPECT_EQ(
      error(request(R"([{"role":"user","content":"q"},{"role":"assistant","content":"a"}])")),
      "messages[1]: the last message must be of a user or a tool, or an assistant message with \"prefix\": true");
  EXPECT_EQ(error(request(R"([{"role":"assistant","content":"a","prefix":true},{"role":"user","content":"q"}])")),
            "messages[0].prefix: only the last message can be a prefix to continue");
  EXPECT_EQ(error(request(R"([{"role":"user","content":"q"},{"role":"user","content":"q","task":"title"}])")),
            "messages[1].task: a task must not directly follow a tool or user message");
  EXPECT_EQ(error(request(R"([{"role":"user","content":"q","task":"dance"}])")),
            "messages[0].task: 'dance' is none of action, query, authority, domain, title, read_url");
}

TEST(ChatOpenai, ErrorsOfTheOtherFields) {
  EXPECT_EQ(error(request(kUser, R"(,"tools":{})")), "tools: expected an array");
  EXPECT_EQ(error(request(kUser, R"(,"tools":[{"type":"function","function":{"name":"a b"}}])")),
            "tools[0].function.name: must be 1 to 64 of A-Z a-z 0-9 _ -");
  EXPECT_EQ(error(request(kUser, R"(,"tools":[{"type":"function","function":{"name":"f","parameters":[]}}])")),
            "tools[0].function.parameters: expected an object");
  EXPECT_EQ(error(request(kUser, R"(,"tools":[{"type":"custom"}])")),
            "tools[0].type: only tools of type function are supported");
  EXPECT_EQ(error(request(kUser, R"(,"tool_choice":"required")")), "tool_choice: 'required' needs tools");
  EXPECT_EQ(
      error(request(
          kUser,
          R"(,"tools":[{"function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}})")),
      "tool_choice.function.name: 'g' is not among the tools");
  EXPECT_EQ(error(request(kUser, R"(,"reasoning_effort":"huge")")),
            "reasoning_effort: \"huge\" is neither one of none, minimal, low, medium, high, xhigh, max, ultra nor "
            "an integer from 1 to 100");
  for (const char* bad : {"0", "101", "true", "75.0", "-1", "null1", "\"0\"", "[]"})
    EXPECT_NE(Json::parse(bad) ? error(request(kUser, std::string(",\"reasoning_effort\":") + bad)) : "no JSON",
              "accepted")
        << bad;
  EXPECT_EQ(error(request(kUser, R"(,"thinking":{"type":"maybe"})")),
            "thinking.type: is none of enabled, disabled, adaptive");
  EXPECT_EQ(error(request(kUser, R"(,"chat_template_kwargs":{"thinking":1})")),
            "chat_template_kwargs.thinking: expected a boolean");
  EXPECT_EQ(error(request(kUser, R"(,"response_format":{"type":"json_schema"})")),
            "response_format.json_schema.schema: expected an object");
  EXPECT_EQ(error(request(kUser, R"(,"continue_final_message":true,"add_generation_prompt":true)")),
            "continue_final_message: cannot be true together with add_generation_prompt");
  EXPECT_EQ(error(request(kUser, R"(,"continue_final_message":true)")),
            "continue_final_message: the last message is not of an assistant");
}

Thinking thinking_of(std::string more) { return read(request(kUser, std::move(more)))->thinking; }

TEST(ChatOpenai, ThinkingAndEffort) {
  EXPECT_TRUE(thinking_of("").on);
  EXPECT_EQ(thinking_of("").effort, 75);
  EXPECT_FALSE(thinking_of("").on_stated);
  for (const EffortName& row : effort_names()) {
    const Thinking t = thinking_of(R"(,"reasoning_effort":")" + std::string(row.name) + "\"");
    EXPECT_EQ(t.on, row.effort != 0) << row.name;
    EXPECT_EQ(t.effort, row.effort == 0 ? 75 : row.effort) << row.name;
  }
  EXPECT_EQ(thinking_of(R"(,"reasoning_effort":33)").effort, 33);
  EXPECT_EQ(thinking_of(R"(,"chat_template_kwargs":{"reasoning_effort":"max"})").effort, 100);
  EXPECT_FALSE(thinking_of(R"(,"chat_template_kwargs":{"enable_thinking":false})").on);
  EXPECT_FALSE(thinking_of(R"(,"chat_template_kwargs":{"thinking":false})").on);
  EXPECT_FALSE(thinking_of(R"(,"thinking":{"type":"disabled"},"reasoning_effort":"high")").on);
  EXPECT_TRUE(thinking_of(R"(,"thinking":{"type":"enabled"},"reasoning_effort":"none")").on)
      << "stated thinking wins";
  EXPECT_EQ(thinking_of(R"(,"thinking":{"type":"enabled","budget_tokens":100})").budget_tokens, 100);
  EXPECT_FALSE(read(request(kUser), {.thinking = false})->thinking.on);
}

TEST(ChatOpenai, DevelopersAndOldForms) {
  const auto roles = [](const Conversation& c) {
    std::string out;
    for (const ChatMessage& m : c.messages)
      out += std::string(role_name(m.role)) + ":" + joined_text(m.blocks, "/") + " ";
    return out;
  };
  EXPECT_EQ(
      roles(*read(request(
          R"([{"role":"system","content":"S"},{"role":"developer","content":"D"},{"role":"user","content":"q"},{"role":"developer","content":"E"}])"))),
      "system:S\n\nD user:q user:E ");
  EXPECT_EQ(
      roles(*read(request(
          R"([{"role":"system","content":"S"},{"role":"system","content":"T"},{"role":"user","content":"q"}])"))),
      "system:S system:T user:q ");
  EXPECT_EQ(roles(*read(request(R"([{"role":"user","content":"q"},{"role":"developer","content":"E"}])"),
                        {.late_developer_is_system = true})),
            "user:q system:E ");
  const auto old =
      read(R"({"functions":[{"name":"f"}],"function_call":"auto","messages":[{"role":"user","content":"q"},
      {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"r"}]})");
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->tools[0].dump(), R"({"type":"function","function":{"name":"f"}})");
  EXPECT_EQ(old->messages[1].tool_calls[0].name, "f");
  EXPECT_EQ(old->messages[2].role, Role::tool);
  const auto unknown = read(
      R"({"messages":[{"role":"user","content":"q"},{"role":"tool","tool_call_id":"1","content":[{"type":"audio"}]}]})");
  EXPECT_EQ(unknown->messages[1].blocks[0].text, "[Unsupported audio]");
}

TEST(ChatOpenai, ToolChoiceFiltersTools) {
  const std::string tools = R"(,"tools":[{"function":{"name":"f"}},{"function":{"name":"g"}}],"tool_choice":)";
  EXPECT_EQ(read(request(kUser, tools + "\"none\""))->tools.size(), 0u);
  EXPECT_EQ(read(request(kUser, tools + "\"auto\""))->tools.size(), 2u);
  const auto named = read(request(kUser, tools + R"({"type":"function","function":{"name":"g"}})"));
  ASSERT_EQ(named->tools.size(), 1u);
  EXPECT_EQ(named->tool_choice, (ToolChoice{ToolChoice::Kind::named, "g"}));
}

std::string encoded(const ChatModelInfo& model, std::string_view text, std::string_view choice = "auto") {
  auto encoder = make_chat_encoder(model, choice);
  if (!encoder) return "error: " + encoder.error().message;
  const auto conversation = read(text);
  const auto chat = (*encoder)->encode(*conversation);
  return chat ? chat->text() : "error: " + chat.error().message;
}

TEST(ChatEncoder, IsChosenByTheCheckpointOrByName) {
  EXPECT_EQ((*make_chat_encoder({"deepseek_v41", {}, {}, "", ""}))->name(), "deepseek_v41");
  EXPECT_EQ((*make_chat_encoder({"", {"DeepseekV41ForCausalLM"}, {}, "", ""}))->name(), "deepseek_v41");
  EXPECT_EQ((*make_chat_encoder({"llama", {}, "{{ 1 }}", "", ""}))->name(), "template");
  EXPECT_EQ((*make_chat_encoder({"llama", {}, {}, "", ""}, "chatml"))->name(), "chatml");
  EXPECT_EQ(encoded({"llama", {}, {}, "", ""}, request(kUser)),
            "error: the model (type 'llama') has no chat template; choose a chat format by name, or use plain "
            "completions");
  EXPECT_EQ(encoded({"llama", {}, {}, "", ""}, request(kUser), "zap"),
            "error: chat format 'zap' is none of auto, template, deepseek_v41, chatml");
  EXPECT_EQ(encoded({"llama", {}, {}, "", ""}, request(kUser), "chatml"),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatEncoder, TemplatesContinueAPrefix) {
  const ChatModelInfo model{"llama",
                            {},
                            "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}{{ "
                            "eos_token }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
                            "<s>",
                            "</s>"};
  EXPECT_EQ(encoded(model, request(kUser)), "<s>[user]q</s>[assistant]");
  EXPECT_EQ(
      encoded(
          model,
          request(R"([{"role":"user","content":"q"},{"role":"assistant","content":" so far ","prefix":true}])")),
      "<s>[user]q</s>[assistant]so far ");
  ChatModelInfo hides = model;
  hides.chat_template = "{{ messages | length }}";
  EXPECT_EQ(encoded(hides,
                    request(R"([{"role":"user","content":"q"},{"role":"assistant","content":"x","prefix":true}])")),
            "error: the model's chat template does not show the last message in a way that can be continued");
}

TEST(ChatEncoder, TemplatesRefuseWhatTheyCannotShow) {
  const ChatModelInfo model{"llama", {}, "{% for m in messages %}{{ m.content }}{% endfor %}", "", ""};
  EXPECT_EQ(encoded(model, request(R"([{"role":"user","content":"q","task":"title"}])")),
            "error: messages[0].task: the model knows no tasks");
  EXPECT_EQ(encoded(model, request(R"([{"role":"latest_reminder","content":"r"},{"role":"user","content":"q"}])")),
            "error: messages[0].role: the model knows no latest_reminder");
  EXPECT_EQ(encoded(model, request(R"([{"role":"user","content":[{"type":"image_url","image_url":"u"}]}])")),
            "error: messages[0].content[0]: the model takes no images");
}

TEST(ChatEncoder, TemplatesThatOpenAThoughtStartInReasoning) {
  auto encoder = make_chat_encoder({"x", {}, "{{ messages[0].content }}<think>\n", "", ""});
  EXPECT_EQ((*encoder)->encode(*read(request(kUser)))->start, OutputStart::reasoning);
  auto typed = make_chat_encoder({"x", {}, "{{ messages[0].content }}", "", ""});
  EXPECT_EQ((*typed)->encode(*read(request(R"([{"role":"user","content":"<think>"}])")))->start,
            OutputStart::content);
}

}  // namespace
}  // namespace gannet
