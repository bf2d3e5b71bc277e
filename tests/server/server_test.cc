// The HTTP API over real sockets, a toy model whose text is known, and the tiny tokenizer that tests ship.
#include "server/server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "server/field_table.h"
#include "support/http_client.h"
#include "support/toy_model.h"
#include "text/tokenizer_file.h"

namespace gannet::server {
namespace {

using test::Client;
using test::fetch;
using test::HttpReply;

class ServerTest : public testing::Test {
 protected:
  void SetUp() override { start({}); }

  void start(ServerOptions options) {
    stop();
    auto tokenizer = load_tokenizer(std::string(GANNET_SOURCE_DIR) + "/tests/golden/tokenizer/tiny");
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    model_ = std::make_unique<engine::LoadedModel>();
    model_->tokenizer.emplace(std::move(*tokenizer));
    model_->name = "toy";
    auto toy = std::make_unique<test::ToyModel>(model_->tokenizer->n_vocab(), 4);
    auto chat = make_chat_encoder({.model_type = "toy"}, "chatml");
    ASSERT_TRUE(chat.has_value()) << chat.error().message;
    model_->chat = std::move(*chat);
    model_->model = std::move(toy);
    // Only tokens that are plain printable bytes are sampled, so that texts are easy to compare.
    model_->token_mask.assign((static_cast<size_t>(model_->tokenizer->n_vocab()) + 31) / 32, 0);
    for (int32_t id = 0; id < model_->tokenizer->n_vocab(); ++id)
      if (const auto bytes = model_->tokenizer->token_bytes(id);
          bytes.size() == 1 && bytes[0] >= 'a' && bytes[0] <= 'z')
        model_->token_mask[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
    auto engine = engine::Engine::create(
        *model_->model, this_machine(),
        {.max_context = 400, .max_seqs = 4, .n_threads = 1, .token_mask = model_->token_mask}, "toy");
    ASSERT_TRUE(engine.has_value());
    service_ = std::make_unique<engine::Service>(std::move(*engine));
    options.model_ids = {"toy", "alias"};
    auto server = Server::start(options, *model_, *service_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
  }
  void TearDown() override { stop(); }
  void stop() {
    if (server_) server_->drain(std::chrono::seconds(5));
    server_.reset();
    service_.reset();
    model_.reset();
  }

  HttpReply post(std::string_view path, std::string_view body, std::string_view headers = {}) {
    return fetch(server_->port(), "POST", path, body, headers);
  }
  Json ok(std::string_view path, std::string_view body) {
    const HttpReply reply = post(path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    auto json = Json::parse(reply.body);
    EXPECT_TRUE(json.has_value()) << reply.body;
    return json ? *json : Json();
  }

  std::unique_ptr<engine::LoadedModel> model_;
  std::unique_ptr<engine::Service> service_;
  std::unique_ptr<Server> server_;
};

// The events of a stream, without [DONE]; fails unless the stream ends with it.
std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> events;
  bool done = false;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << "an event is not complete";
    if (end == std::string::npos) break;
    const std::string line = body.substr(at, end - at);
    at = end + 2;
    EXPECT_FALSE(done) << "an event after [DONE]";
    if (line == "data: [DONE]") {
      done = true;
      continue;
    }
    auto json = Json::parse(std::string_view(line).substr(6));
    EXPECT_TRUE(json.has_value()) << line;
    if (json) events.push_back(std::move(*json));
  }
  EXPECT_TRUE(done);
  return events;
}

std::string text_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (at == nullptr) return "";
    at = key == std::string("0") ? (at->items().empty() ? nullptr : &at->items()[0]) : at->find(key);
  }
  return at == nullptr || at->as_string() == nullptr ? "" : *at->as_string();
}

TEST_F(ServerTest, StreamedTextEqualsUnstreamedText) {
  for (const char* rest : {"", ",\"stop\":[\"e\",\"xyz\"]", ",\"logprobs\":true,\"top_logprobs\":2",
                           ",\"temperature\":1,\"seed\":5"}) {
    const std::string body =
        std::string(
            "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],\"temperature\":0,\"max_tokens\":40") +
        rest + "}";
    const Json whole = ok("/v1/chat/completions", "{" + body);
    const HttpReply streamed =
        post("/v1/chat/completions", "{\"stream\":true,\"stream_options\":{\"include_usage\":true}," + body);
    ASSERT_EQ(streamed.status, 200) << streamed.body;
    std::string joined, finish;
    int finishes = 0;
    Json usage;
    for (const Json& event : events_of(streamed.body)) {
      if (event.find("choices")->items().empty()) {
        usage = *event.find("usage");
        continue;
      }
      EXPECT_TRUE(event.find("usage")->is_null());
      joined += text_at(event, {"choices", "0", "delta", "content"});
      if (const auto reason = text_at(event, {"choices", "0", "finish_reason"}); !reason.empty()) {
        finish = reason;
        ++finishes;
      }
    }
    EXPECT_EQ(joined, text_at(whole, {"choices", "0", "message", "content"}));
    EXPECT_EQ(finish, text_at(whole, {"choices", "0", "finish_reason"}));
    EXPECT_EQ(finishes, 1);
    EXPECT_EQ(usage.find("completion_tokens")->as_int(), whole.find("usage")->find("completion_tokens")->as_int());
    EXPECT_EQ(joined.find('e'),
              std::string(rest).find("stop") == std::string::npos ? joined.find('e') : std::string::npos);
  }
}

TEST_F(ServerTest, BadRequestsNameTheFieldAndDisturbNobody) {
  const std::string good = "{\"prompt\":\"abc\",\"temperature\":0,\"max_tokens\":20}";
  const std::string before = text_at(ok("/v1/completions", good), {"choices", "0", "text"});
  const std::string context(5000, 'a');
  struct Case {
    const char* path;
    std::string body;
    int status;
    const char* code;
    const char* param;
  };
  const Case cases[] = {
      {"/v1/chat/completions", "{", 400, "invalid_json", ""},
      {"/v1/chat/completions", "[]", 400, "invalid_type", ""},
      {"/v1/chat/completions", "{\"messages\":\"x\"}", 400, "invalid_value", "messages"},
      {"/v1/chat/completions", "{\"messages\":[]}", 400, "invalid_value", "messages"},
      {"/v1/chat/completions", "{\"model\":\"other\",\"messages\":[]}", 404, "model_not_found", "model"},
      {"/v1/chat/completions", "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"top_logprobs\":2}", 400,
       "invalid_value", "top_logprobs"},
      {"/v1/chat/completions",
       "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"response_format\":{\"type\":\"json_object\"}}", 400,
       "unsupported_value", "response_format"},
      {"/v1/completions", "{}", 400, "missing_required_parameter", "prompt"},
      {"/v1/completions", "{\"prompt\":5}", 400, "invalid_type", "prompt"},
      {"/v1/completions", "{\"prompt\":[-1,999999999]}", 400, "invalid_value", "prompt"},
      {"/v1/completions", "{\"prompt\":\"a\",\"temperature\":NaN}", 400, "invalid_json", ""},
      {"/v1/completions", "{\"prompt\":\"a\",\"temperature\":1e999}", 400, "invalid_type", "temperature"},
      {"/v1/completions", "{\"prompt\":\"a\",\"temperature\":\"1\"}", 400, "invalid_type", "temperature"},
      {"/v1/completions", "{\"prompt\":\"a\",\"temperature\":3}", 400, "invalid_value", "temperature"},
      {"/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":0}", 400, "invalid_value", "max_tokens"},
      {"/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":-5}", 400, "invalid_value", "max_tokens"},
      {"/v1/completions", "{\"prompt\":\"a\",\"n\":0}", 400, "invalid_value", "n"},
      {"/v1/completions", "{\"prompt\":\"a\",\"stop\":\"\"}", 400, "invalid_value", "stop"},
      {"/v1/completions", "{\"prompt\":\"a\",\"stop_token_ids\":[2147483647]}", 400, "invalid_value",
       "stop_token_ids"},
      {"/v1/completions", "{\"prompt\":\"a\",\"logit_bias\":{\"-1\":5}}", 400, "invalid_value", "logit_bias"},
      {"/v1/completions", "{\"prompt\":\"a\",\"logit_bias\":{\"1\":500}}", 400, "invalid_value", "logit_bias"},
      {"/v1/completions", "{\"prompt\":\"a\",\"guided_json\":{}}", 400, "unsupported_value", "guided_json"},
      {"/v1/completions", "{\"prompt\":\"" + context + "\"}", 400, "context_length_exceeded", "prompt"},
      {"/v1/completions", "{\"stream\":true,\"prompt\":\"" + context + "\"}", 400, "context_length_exceeded",
       "prompt"},
      {"/v1/nothing", "{}", 404, "unknown_url", ""},
  };
  for (const Case& c : cases) {
    const HttpReply reply = post(c.path, c.body);
    EXPECT_EQ(reply.status, c.status) << c.path << " " << c.body.substr(0, 100) << " -> " << reply.body;
    const auto json = Json::parse(reply.body);
    ASSERT_TRUE(json.has_value()) << reply.body;
    EXPECT_EQ(text_at(*json, {"error", "code"}), c.code) << c.body.substr(0, 100) << " -> " << reply.body;
    EXPECT_EQ(text_at(*json, {"error", "param"}), c.param) << c.body.substr(0, 100) << " -> " << reply.body;
    EXPECT_FALSE(text_at(*json, {"error", "message"}).empty());
  }
  EXPECT_EQ(fetch(server_->port(), "GET", "/v1/completions").status, 405);
  EXPECT_EQ(text_at(ok("/v1/completions", good), {"choices", "0", "text"}), before);
}

TEST_F(ServerTest, NullMeansAbsentAndIntegralRealsAreIntegers) {
  const Json a =
      ok("/v1/completions",
         "{\"prompt\":\"abc\",\"temperature\":0,\"max_tokens\":5.0,\"stop\":null,\"top_p\":null,\"seed\":null}");
  EXPECT_EQ(text_at(a, {"choices", "0", "text"}).size(), 5u);
}

TEST_F(ServerTest, ChoicesDifferAndUsageCountsThePromptOnce) {
  const Json json =
      ok("/v1/completions", "{\"prompt\":\"abcabcabc\",\"n\":3,\"temperature\":1,\"seed\":1,\"max_tokens\":12}");
  std::set<std::string> texts;
  for (const Json& choice : json.find("choices")->items()) texts.insert(*choice.find("text")->as_string());
  EXPECT_EQ(texts.size(), 3u);
  EXPECT_EQ(json.find("usage")->find("completion_tokens")->as_int(), 36);
  const auto prompt = json.find("usage")->find("prompt_tokens")->as_int();
  EXPECT_EQ(prompt, ok("/tokenize", "{\"prompt\":\"abcabcabc\"}").find("count")->as_int());
}

TEST_F(ServerTest, AClientThatLeavesFreesItsSequence) {
  for (int i = 0; i < 30; ++i) {
    Client client(server_->port());
    client.send(
        "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: "
        "50\r\n\r\n{\"prompt\":\"abc\",\"stream\":true,\"max_tokens\":99999}  ");
    if (i % 2 == 0) client.until("data: ");
  }
  for (int i = 0; i < 400 && service_->counts().scheduler.running + service_->counts().scheduler.waiting > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(service_->counts().scheduler.running, 0);
  EXPECT_EQ(service_->counts().scheduler.waiting, 0);
  EXPECT_EQ(service_->counts().kv_blocks_held, 0);
}

TEST_F(ServerTest, SeveralPromptsEchoBestOfAndTimings) {
  const Json two = ok("/v1/completions",
                      R"({"prompt":["abc","xyz"],"n":2,"temperature":1,"seed":3,"max_tokens":6,"echo":true})");
  ASSERT_EQ(two.find("choices")->items().size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const Json& choice = two.find("choices")->items()[static_cast<size_t>(i)];
    EXPECT_EQ(choice.find("index")->as_int(), i);
    EXPECT_EQ(text_at(choice, {"text"}).substr(0, 3), i < 2 ? "abc" : "xyz");
  }
  EXPECT_EQ(
      text_at(ok("/v1/completions", R"({"prompt":"abc","max_tokens":0,"echo":true})"), {"choices", "0", "text"}),
      "abc");
  // The best of ten is the best of the ten, by the log-probabilities that the server itself states.
  const std::string ten = R"({"prompt":"abc","temperature":1,"seed":9,"max_tokens":5,"logprobs":0,)";
  const Json all = ok("/v1/completions", ten + R"("n":10})"),
             best = ok("/v1/completions", ten + R"("best_of":10})");
  std::string wanted;
  double most = -1e9;
  for (const Json& choice : all.find("choices")->items()) {
    double sum = 0;
    for (const Json& value : choice.find("logprobs")->find("token_logprobs")->items()) sum += *value.as_double();
    if (sum > most) wanted = text_at(choice, {"text"});
    most = std::max(most, sum);
  }
  EXPECT_EQ(text_at(best, {"choices", "0", "text"}), wanted);
  EXPECT_EQ(best.find("choices")->items().size(), 1u);
  const Json timed = ok("/v1/completions", R"({"prompt":"abc","max_tokens":5,"timings":true})");
  const Json* timings = timed.find("timings");
  ASSERT_NE(timings, nullptr);
  EXPECT_GE(*timings->find("total_ms")->as_double(), *timings->find("first_token_ms")->as_double());
  EXPECT_EQ(timings->find("completion_tokens")->as_int(), 5);
}

TEST_F(ServerTest, LogprobsHaveTrueBytesAndTheStreamHasThemOnce) {
  const std::string body =
      R"("messages":[{"role":"user","content":"hello"}],"temperature":0,"max_tokens":12,"logprobs":true,"top_logprobs":3})";
  const Json whole = ok("/v1/chat/completions", "{" + body);
  const auto spelled = [](const Json& logprobs) {
    std::string text;
    for (const Json& entry : logprobs.find("content")->items()) {
      for (const Json& byte : entry.find("bytes")->items()) text += static_cast<char>(*byte.as_int());
      EXPECT_EQ(entry.find("top_logprobs")->items().size(), 3u);
      EXPECT_LE(*entry.find("logprob")->as_double(), 0);
    }
    return text;
  };
  const Json& choice = whole.find("choices")->items()[0];
  EXPECT_EQ(spelled(*choice.find("logprobs")), text_at(choice, {"message", "content"}));
  std::string joined;
  for (const Json& event : events_of(post("/v1/chat/completions", "{\"stream\":true," + body).body))
    if (const Json* logprobs = event.find("choices")->items()[0].find("logprobs"); !logprobs->is_null())
      joined += spelled(*logprobs);
  EXPECT_EQ(joined, text_at(choice, {"message", "content"}));
}

TEST(ApiPage, NamesEveryFieldOfTheTables) {
  std::ifstream file(std::string(GANNET_SOURCE_DIR) + "/docs/api.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string_view field : fields_without_effect())
    EXPECT_NE(page.find(fmt::format("`{}`", field)), std::string::npos) << field;
  for (const RefusedField& field : refused_fields())
    EXPECT_NE(page.find(fmt::format("`{}`", field.name)), std::string::npos) << field.name;
}

TEST_F(ServerTest, RefusedFieldsAreNamedAndTheOthersChangeNothing) {
  const auto with = [](std::string_view field, const char* value) {
    return fmt::format(R"({{"prompt":"abc","temperature":0,"max_tokens":4,"{}":{}}})", field, value);
  };
  const std::string plain = text_at(ok("/v1/completions", with("user", "null")), {"choices", "0", "text"});
  for (const std::string_view field : fields_without_effect())
    EXPECT_EQ(text_at(ok("/v1/completions", with(field, "{\"a\":1}")), {"choices", "0", "text"}), plain) << field;
  for (const RefusedField& field : refused_fields()) {
    const HttpReply reply = post("/v1/completions", with(field.name, "[1]"));
    EXPECT_EQ(reply.status, 400) << field.name;
    EXPECT_EQ(text_at(*Json::parse(reply.body), {"error", "param"}), field.name);
    EXPECT_EQ(post("/v1/completions", with(field.name, "null")).status, 200) << field.name;
  }
  const std::string chat = R"({"messages":[{"role":"user","content":"x"}],"max_tokens":1,)";
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}],)";
  EXPECT_EQ(post("/v1/chat/completions", chat + tools + R"("tool_choice":"auto"})").status, 200);
  EXPECT_EQ(post("/v1/chat/completions", chat + tools + R"("tool_choice":"required"})").status, 400);
  EXPECT_EQ(
      post("/v1/chat/completions", chat + tools + R"("tool_choice":{"type":"function","function":{"name":"f"}}})")
          .status,
      400);
  EXPECT_EQ(post("/v1/chat/completions", chat + R"("response_format":{"type":"text"}})").status, 200);
}

TEST_F(ServerTest, TokensThereAndBack) {
  const Json ids =
      ok("/v1/tokenize", "{\"prompt\":\"a b  c\\n\\n\\td \xF0\x9F\x98\x80\",\"add_special_tokens\":false}");
  Json body = Json::object();
  body.set("tokens", *ids.find("tokens"));
  EXPECT_EQ(*ok("/detokenize", body.dump()).find("prompt")->as_string(), "a b  c\n\n\td \xF0\x9F\x98\x80");
  EXPECT_EQ(post("/detokenize", "{\"tokens\":[99999999]}").status, 400);
}

TEST_F(ServerTest, KeysGuardTheApiAndNotHealth) {
  ServerOptions options;
  options.api_keys = {"first", "second"};
  start(options);
  EXPECT_EQ(fetch(server_->port(), "GET", "/v1/models").status, 401);
  EXPECT_EQ(fetch(server_->port(), "GET", "/v1/models", "", "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(fetch(server_->port(), "GET", "/v1/models", "", "Authorization: Bearer second\r\n").status, 200);
  EXPECT_EQ(fetch(server_->port(), "GET", "/models/alias", "", "x-api-key: first\r\n").status, 200);
  const auto alias = Json::parse(fetch(server_->port(), "GET", "/models/alias", "", "x-api-key: first\r\n").body);
  ASSERT_TRUE(alias.has_value());
  EXPECT_EQ(text_at(*alias, {"id"}), "alias");
  EXPECT_EQ(fetch(server_->port(), "GET", "/health").status, 200);
  EXPECT_EQ(fetch(server_->port(), "GET", "/metrics").status, 200);
}

TEST_F(ServerTest, ThePageRunsOnlyItsOwnScript) {
  const HttpReply page = fetch(server_->port(), "GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.head.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.head.find("unsafe-inline"), std::string::npos);
  EXPECT_EQ(page.body.find("http://"), std::string::npos) << "the page must not need anything from elsewhere";
  EXPECT_EQ(page.body.find("innerHTML"), std::string::npos) << "text of the model must not become markup";
}

}  // namespace
}  // namespace gannet::server
