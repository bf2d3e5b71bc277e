// Replies in the shapes of /v1/chat/completions and /v1/completions, whole or as server-sent events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/http_server.h"
#include "server/openai.h"
#include "server/reply_collector.h"

namespace gannet::server {

struct OpenAiReplyOptions {
  bool chat = true;
  bool stream = false, include_usage = false, timings = false;
  bool reasoning = true;  // false: reasoning is left out
  bool logprobs = false;
  int32_t n_choices = 1;             // that run
  int32_t n_shown = 1, best_of = 1;  // of each prompt: the n_shown best of best_of
  std::vector<std::string> echo;     // one text a prompt, shown before its completion; empty: no echo
};

class OpenAiReply final : public ReplySink {
 public:
  OpenAiReply(const RouteContext& context, OpenAiReplyOptions options, std::shared_ptr<net::Exchange> exchange);
  void event(const ReplyEvent& event) override;
  void flush() override;
  void done(const Usage& usage, const Timings& timings) override;
  void error(const ApiError& error) override;

 private:
  void begin();
  void open_choice(int32_t choice);
  void chunk(int32_t choice, std::string_view delta, std::string_view logprobs, std::string_view finish);
  void text_chunk(int32_t choice, std::string_view text, const std::vector<TokenLogprobs>& logprobs);
  void chat_event(const ReplyEvent& event);
  Json chat_logprobs(const std::vector<TokenLogprobs>& content, const std::vector<TokenLogprobs>& reasoning) const;
  Json text_logprobs(const std::vector<TokenLogprobs>& tokens, int32_t choice);
  Json logprob_entry(int32_t id, float logprob) const;
  Json whole_choice(const WholeChoice& from, int32_t index, int32_t shown_as);
  Json whole(const Usage& usage, const Timings& timings);
  Json usage_json(const Usage& usage) const;
  std::vector<int32_t> shown(const std::vector<WholeChoice>& choices) const;

  const engine::LoadedModel& model_;
  OpenAiReplyOptions options_;
  std::shared_ptr<net::Exchange> exchange_;
  std::string id_, model_id_, fingerprint_;
  int64_t created_;
  std::string chunk_front_;   // of every chunk, up to the choice's index
  std::string out_;           // chunks since the last flush
  std::vector<char> opened_;  // choices whose first chunk was sent
  ReplyCollector collector_;
  bool begun_ = false;
};

}  // namespace gannet::server
