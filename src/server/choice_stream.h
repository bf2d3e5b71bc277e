// The tokens of one choice to reply events: detokenizing, parsing of reasoning and calls, stop strings, logprobs.
// Not thread-safe: used by the thread that delivers the tokens.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "server/generation_request.h"
#include "server/reply_event.h"
#include "text/detokenizer.h"
#include "text/output_parser.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace gannet::server {

class ChoiceStream {
 public:
  // Borrows the tokenizer and the request.
  ChoiceStream(const Tokenizer& tokenizer, const GenerationRequest& request, int32_t index);

  // One sampled token that is text (not the one that ends it). May end the choice: see ended().
  void push(const sample::Sampled& sampled, std::vector<ReplyEvent>& out);
  // The text is over: `length` cut it, or a token ended it (`stop_reason`: null, or that token's id).
  void finish(bool length, Json stop_reason, std::vector<ReplyEvent>& out);

  bool ended() const { return ended_; }
  int32_t reasoning_tokens() const { return reasoning_tokens_; }
  int32_t tokens() const { return n_tokens_; }
  void count_end_token() { ++n_tokens_; }

 private:
  struct Pending {
    TokenLogprobs logprobs;
    int64_t index;
  };

  std::string text_of(int32_t token);
  void count_reasoning(std::string_view spelled);
  void route(std::vector<OutputEvent>& events, std::vector<ReplyEvent>& out);
  void content(std::string text, std::vector<ReplyEvent>& out);
  void take_logprobs(int64_t before, std::vector<TokenLogprobs>* into);
  void end(Finish finish, Json stop_reason, std::vector<ReplyEvent>& out);

  const Tokenizer& tokenizer_;
  const GenerationRequest& request_;
  int32_t index_;
  Detokenizer detokenizer_;
  std::unique_ptr<OutputParser> parser_;  // null: all is content
  StopStrings stops_;
  std::vector<OutputEvent> parsed_;
  std::deque<Pending> pending_;                   // tokens that no event has taken
  std::vector<TokenLogprobs> waiting_;            // tokens whose content is held back
  int64_t content_seen_ = 0, content_shown_ = 0;  // bytes
  int64_t chars_seen_ = 0;                        // of content
  int32_t n_tokens_ = 0, reasoning_tokens_ = 0;
  double sum_logprob_ = 0;
  bool thinking_ = false, ended_ = false;
};

}  // namespace gannet::server
