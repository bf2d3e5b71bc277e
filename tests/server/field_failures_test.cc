// Failures that users met in servers of this kind, tried from outside. The ids in the names are those of the list
// that these cases come from; each stands for its whole kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "support/http_client.h"
#include "support/say_server.h"

namespace gannet::server {
namespace {

using test::Client;
using test::fetch;
using test::HttpReply;

class FieldFailures : public testing::Test {
 protected:
  void SetUp() override { start({}); }
  void start(ServerOptions options) {
    say_.reset();
    auto running = test::SayServer::start(std::move(options));
    ASSERT_TRUE(running.has_value()) << running.error().message;
    say_ = std::move(*running);
  }
  uint16_t port() const { return say_->server->port(); }
  HttpReply post(std::string_view path, std::string_view body) { return fetch(port(), "POST", path, body); }
  // The text of a completion, joined where it is streamed.
  std::string text(const std::string& body) {
    const HttpReply reply = post("/v1/completions", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::string out;
    if (const auto whole = Json::parse(reply.body))
      return *whole->find("choices")->items()[0].find("text")->as_string();
    for (size_t at = 0; (at = reply.body.find("data: {", at)) != std::string::npos; at += 6) {
      const auto event = Json::parse(reply.body.substr(at + 6, reply.body.find('\n', at) - at - 6));
      EXPECT_TRUE(event.has_value());
      out += *event->find("choices")->items()[0].find("text")->as_string();
    }
    return out;
  }
  void expect_400(const std::string& body, std::string_view param, std::string_view code = "") {
    const HttpReply reply = post("/v1/completions", body);
    EXPECT_EQ(reply.status, 400) << body.substr(0, 200) << reply.body;
    const auto json = Json::parse(reply.body);
    ASSERT_TRUE(json.has_value()) << reply.body;
    if (!param.empty()) {
      EXPECT_EQ(*json->find("error")->find("param"), Json(param)) << body.substr(0, 200);
    }
    if (!code.empty()) {
      EXPECT_EQ(*json->find("error")->find("code"), Json(code)) << body.substr(0, 200);
    }
  }
  void expect_idle() {
    for (int i = 0; i < 400; ++i) {
      const auto counts = say_->service->counts();
      if (counts.scheduler.running + counts.scheduler.waiting == 0 && counts.kv_blocks_held == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const auto counts = say_->service->counts();
    EXPECT_EQ(counts.scheduler.running, 0);
    EXPECT_EQ(counts.scheduler.waiting, 0);
    EXPECT_EQ(counts.kv_blocks_held, 0);
    const std::string metrics = fetch(port(), "GET", "/metrics").body;
    EXPECT_NE(metrics.find("gannet:requests_in_flight{model_name=\"say\",engine=\"0\"} 0\n"), std::string::npos);
  }
  std::unique_ptr<test::SayServer> say_;
};

const std::string kA = R"({"prompt":"SAY one two three","temperature":0,"max_tokens":20})";

TEST_F(FieldFailures, T1_CyrillicAndEmojiStreamClean) {
  const std::string front = R"({"prompt":"SAY Сказка: 🫠🥹龜 ","temperature":0,"max_tokens":60)";
  const std::string whole = text(front + "}");
  EXPECT_EQ(whole, "Сказка: 🫠🥹龜 ");
  EXPECT_EQ(text(front + ",\"stream\":true}"), whole);
}

TEST_F(FieldFailures, T4_IllegalContentLeavesNoTrace) {
  const std::string before = text(kA);
  expect_400(R"({"prompt":[-1,999999999]})", "prompt");
  EXPECT_EQ(post("/v1/completions", "{\"prompt\":\"\\u0001\\u0002\\u0000\",\"max_tokens\":3}").status, 200);
  expect_400("{\"prompt\":\"\xff\xfe\"}", "", "invalid_json");
  EXPECT_EQ(text(kA), before);
}

TEST_F(FieldFailures, T5_BlanksSurviveThereAndBack) {
  const auto ids = Json::parse(post("/tokenize", R"({"prompt":"a b  c\n\n\td","add_special_tokens":false})").body);
  Json body = Json::object();
  body.set("tokens", *ids->find("tokens"));
  EXPECT_EQ(*Json::parse(post("/detokenize", body.dump()).body)->find("prompt"), Json("a b  c\n\n\td"));
}

TEST_F(FieldFailures, S5_P5_P8_P9_TooLongIsAlwaysTheSame400) {
  // Ids, so that the length is exact: 8192 is the context.
  const auto prompt = [](int n) {
    std::string ids = "5";
    for (int i = 1; i < n; ++i) ids += ",5";
    return "\"prompt\":[" + ids + "]";
  };
  EXPECT_EQ(post("/v1/completions", "{" + prompt(8191) + "}").status, 200);
  for (int round = 0; round < 5; ++round)
    for (const int n : {8192, 8193, 16384})
      for (const char* rest : {"}", ",\"stream\":true}", ",\"max_tokens\":5}"}) {
        const HttpReply reply = post("/v1/completions", "{" + prompt(n) + rest);
        EXPECT_EQ(reply.status, 400);
        EXPECT_NE(reply.body.find("8192 tokens"), std::string::npos) << reply.body;
        EXPECT_NE(reply.body.find(std::to_string(n) + " tokens"), std::string::npos) << reply.body;
        EXPECT_NE(reply.body.find("context_length_exceeded"), std::string::npos);
      }
  for (const char* bad : {"-5", "0"})
    expect_400(fmt::format(R"({{"prompt":"a","max_tokens":{}}})", bad), "max_tokens");
  EXPECT_EQ(text(kA), "one two three");
  expect_idle();
}

TEST_F(FieldFailures, S7_D3_ACrowdChangesNoText) {
  const std::string seeded = R"({"prompt":"abc","temperature":1,"seed":5,"max_tokens":16)";
  const std::string alone = text(kA), sampled = text(seeded + "}");
  std::vector<std::thread> crowd;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 16; ++i)
    crowd.emplace_back([&, i] {
      for (int k = 0; k < 4; ++k) {
        if (i % 4 == 3)
          text(fmt::format(R"({{"prompt":"SAY other {} {}","max_tokens":{}}})", i, k, 5 + i));
        else if (i % 4 == 2)
          wrong += text(seeded + (k % 2 ? ",\"stream\":true}" : "}")) != sampled;
        else
          wrong += text(kA.substr(0, kA.size() - 1) + (k % 2 ? ",\"stream\":true}" : "}")) != alone;
      }
    });
  for (auto& thread : crowd) thread.join();
  EXPECT_EQ(wrong, 0);
  expect_idle();
}

TEST_F(FieldFailures, P1_P3_NumbersThatAreNone) {
  for (const char* field : {"temperature", "top_p", "presence_penalty", "frequency_penalty"}) {
    expect_400(fmt::format(R"({{"prompt":"a","{}":NaN}})", field), "", "invalid_json");
    for (const char* bad : {"1e999", "-1e999", "\"1\"", "[]", "1e300"})
      expect_400(fmt::format(R"({{"prompt":"a","{}":{}}})", field, bad), field);
  }
  for (const char* tiny : {"-0.0", "0", "1e-4", "1e-38", "4e-320"})
    EXPECT_EQ(text(fmt::format(R"({{"prompt":"SAY one two three","temperature":{},"max_tokens":20}})", tiny)),
              "one two three");
}

TEST_F(FieldFailures, P4_IdsBeyondTheVocabulary) {
  expect_400(R"({"prompt":"a","stop_token_ids":[2147483647]})", "stop_token_ids");
  expect_400(R"({"prompt":"a","logit_bias":{"-1":5}})", "logit_bias");
  expect_400(R"({"prompt":"a","logit_bias":{"99999999":1}})", "logit_bias");
  expect_400(R"({"prompt":"a","logit_bias":{"99999999999999999999":1}})", "logit_bias");
  expect_400(R"({"prompt":"a","allowed_token_ids":[99999999]})", "allowed_token_ids");
  EXPECT_EQ(text(kA), "one two three");
}

TEST_F(FieldFailures, P7_MaxCompletionTokensCounts) {
  const auto reply = Json::parse(
      post(
          "/v1/chat/completions",
          R"({"messages":[{"role":"user","content":"SAY a long thought about it</think>and more"}],"max_completion_tokens":5})")
          .body);
  EXPECT_EQ(reply->find("usage")->find("completion_tokens")->as_int(), 5);
  EXPECT_EQ(*reply->find("choices")->items()[0].find("finish_reason"), Json("length"));
}

TEST_F(FieldFailures, I1_I3_PicturesAreRefusedByName) {
  std::string parts = R"({"type":"text","text":"see"})";
  for (int i = 0; i < 40; ++i)
    parts += R"(,{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}})";
  const HttpReply reply =
      post("/v1/chat/completions", R"({"messages":[{"role":"user","content":[)" + parts + "]}]}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("messages[0].content[1]"), std::string::npos) << reply.body;
}

std::string request(const std::string& path, const std::string& body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body);
}

TEST_F(FieldFailures, L1_ClientsThatLeaveFreeEverything) {
  const std::string words(600, 'w');
  const std::string body = R"({"messages":[{"role":"user","content":"SAY x</think>)" + words + R"("}],"stream":)";
  for (int i = 0; i < 60; ++i) {
    Client streamed(port());
    streamed.send(request("/v1/chat/completions", body + "true}"));
    if (i % 3 > 0) streamed.until("data: ");
    Client whole(port());
    whole.send(request("/v1/chat/completions", body + "false}"));
  }
  EXPECT_EQ(text(kA), "one two three");
  expect_idle();
}

TEST_F(FieldFailures, L2_ALeftTurnLeavesTheConversationWhole) {
  const std::string history = R"({"role":"user","content":"one"},{"role":"assistant","content":"1"},)";
  const auto turn = [&](const char* say, const char* rest) {
    return R"({"messages":[)" + history + R"({"role":"user","content":"SAY x</think>)" + say + "\"}]" + rest + "}";
  };
  {
    Client gone(port());
    gone.send(request("/v1/chat/completions", turn("second", ",\"stream\":true")));
    gone.until("data: ");
  }
  const auto reply = Json::parse(post("/v1/chat/completions", turn("third", "")).body);
  EXPECT_EQ(*reply->find("choices")->items()[0].find("message")->find("content"), Json("third"));
  expect_idle();
}

TEST_F(FieldFailures, L4_CancelRacesTheEnd) {
  std::mt19937 random(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([this, seed = random()] {
      std::mt19937 mine(seed);
      for (int i = 0; i < 25; ++i) {
        Client client(port());
        client.send(
            request("/v1/completions", R"({"prompt":"SAY a b c d e f g h","stream":true,"max_tokens":20})"));
        std::this_thread::sleep_for(std::chrono::microseconds(mine() % 4000));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(text(kA), "one two three");
  expect_idle();
}

TEST_F(FieldFailures, AFullServerSays429AndADrainedOne503) {
  ServerOptions options;
  options.max_requests = 1;
  options.admin_key = "root";
  options.allowed_origins = {"https://app.example"};
  start(options);
  Client busy(port());
  busy.send(request("/v1/completions",
                    R"({"prompt":"SAY )" + std::string(3000, 'w') + R"(","stream":true,"max_tokens":8000})"));
  busy.until("data: ");
  const HttpReply refused = post("/v1/completions", kA);
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_NE(refused.head.find("Retry-After: "), std::string::npos);
  EXPECT_NE(post("/v1/messages", R"({"messages":[],"max_tokens":1})").body.find("rate_limit_error"),
            std::string::npos);
  busy.close();
  expect_idle();
  EXPECT_EQ(text(kA), "one two three");
  EXPECT_EQ(post("/admin/drain", "").status, 401);
  EXPECT_EQ(fetch(port(), "POST", "/admin/log_level", R"({"level":"loud"})", "x-api-key: root\r\n").status, 400);
  EXPECT_EQ(fetch(port(), "POST", "/admin/drain", "", "Authorization: Bearer root\r\n").status, 200);
  EXPECT_EQ(fetch(port(), "GET", "/health").status, 503);
  EXPECT_EQ(post("/v1/completions", kA).status, 503);
  EXPECT_EQ(post("/v1/messages", "{}").status, 529);
}

TEST_F(FieldFailures, OriginsAndRequestIdsOnlyAsAllowed) {
  ServerOptions options;
  options.allowed_origins = {"https://app.example"};
  EXPECT_EQ(fetch(port(), "GET", "/v1/models", "", "Origin: https://app.example\r\n").head.find("Access-Control"),
            std::string::npos)
      << "off until asked for";
  start(options);
  const auto head = [&](const char* headers) { return fetch(port(), "GET", "/v1/models", "", headers).head; };
  EXPECT_NE(head("Origin: https://app.example\r\n").find("Access-Control-Allow-Origin: https://app.example"),
            std::string::npos);
  EXPECT_EQ(head("Origin: https://other.example\r\n").find("Access-Control"), std::string::npos);
  EXPECT_NE(head("X-Request-Id: abc-1\r\n").find("X-Request-Id: abc-1"), std::string::npos);
  EXPECT_EQ(head(("X-Request-Id: " + std::string(200, 'a') + "\r\n").c_str()).find("X-Request-Id"),
            std::string::npos);
  EXPECT_EQ(fetch(port(), "OPTIONS", "/v1/chat/completions").status, 204);
}

TEST_F(FieldFailures, ADrainAtItsLimitEndsStreamsWithAnError) {
  Client client(port());
  client.send(request("/v1/completions",
                      R"({"prompt":"SAY )" + std::string(3500, 'w') + R"(","stream":true,"max_tokens":8000})"));
  client.until("data: ");
  std::thread drain([&] { say_->server->drain(std::chrono::milliseconds(30)); });
  const std::string rest = client.rest();
  drain.join();
  EXPECT_NE(rest.find("server_overloaded"), std::string::npos)
      << rest.substr(rest.size() - std::min<size_t>(300, rest.size()));
  EXPECT_NE(rest.find("data: [DONE]"), std::string::npos);
}

TEST_F(FieldFailures, MetricsHaveTheNamesOfDashboards) {
  (void)text(kA);
  expect_idle();
  const std::string metrics = fetch(port(), "GET", "/metrics").body;
  for (const char* line :
       {"vllm:request_success_total{model_name=\"say\",engine=\"0\",finished_reason=\"stop\"} 1\n",
        "vllm:time_to_first_token_seconds_count{model_name=\"say\",engine=\"0\"} 1\n",
        "vllm:e2e_request_latency_seconds_bucket{model_name=\"say\",engine=\"0\",le=\"+Inf\"} 1\n",
        "vllm:inter_token_latency_seconds_sum{", "vllm:request_prompt_tokens_count{",
        "vllm:num_requests_running{model_name=\"say\",engine=\"0\"} 0\n"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line << "\n" << metrics;
}

TEST_F(FieldFailures, RandomBodiesNeverMakeA5xx) {
  // Valid bodies with pieces swapped, doubled and cut.
  const std::string seeds[] = {
      kA,
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"SAY a"}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"max_tokens":4,"stop":["x"],"logprobs":true,"top_logprobs":2,"n":2,"stream":true})",
      R"({"max_tokens":4,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}],"thinking":{"type":"disabled"}})",
      R"({"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"y"}],"max_output_tokens":3,"reasoning":{"effort":"low"}})"};
  const char* paths[] = {"/v1/completions", "/v1/chat/completions",      "/v1/messages",
                         "/v1/responses",   "/v1/messages/count_tokens", "/tokenize",
                         "/detokenize"};
  const std::string_view pieces[] = {"null", "-1",        "1e999",       "\"\"", "[]",       "{}",
                                     "true", "\"SAY x\"", "99999999999", ",",    "\"role\"", "[[[["};
  std::mt19937 random(11);
  for (int i = 0; i < 1500; ++i) {
    std::string body = seeds[random() % std::size(seeds)];
    for (uint32_t n = random() % 4; n > 0; --n) {
      const size_t at = random() % body.size(), length = random() % 12;
      body.replace(at, std::min(length, body.size() - at), pieces[random() % std::size(pieces)]);
    }
    const HttpReply reply = post(paths[random() % std::size(paths)], body);
    ASSERT_TRUE(reply.status == 200 || (reply.status >= 400 && reply.status < 500))
        << reply.status << body << reply.body;
  }
  EXPECT_EQ(text(kA), "one two three");
  expect_idle();
}

}  // namespace
}  // namespace gannet::server
