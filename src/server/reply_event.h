// What a generation tells whoever writes the reply, in no protocol's shape. Streamed and unstreamed replies of
// every protocol are made from these events alone, so their texts are equal by construction. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "sample/sampler.h"
#include "server/api_error.h"

namespace gannet::server {

struct TokenLogprobs {
  int32_t token = 0;
  float logprob = 0;
  std::vector<sample::TokenLogprob> top;
  int64_t text_offset = 0;  // bytes of content before it
  int64_t char_offset = 0;  // the same in code points
};

enum class Finish : uint8_t { stop, length, tool_calls };

struct ReplyEvent {
  enum class Kind : uint8_t {
    content,     // text, and the logprobs of its tokens
    reasoning,   // the same, of the thinking before the answer
    tool_begin,  // name, name_space, tool_id
    tool_args,   // text: the next piece of the JSON arguments
    tool_end,    // the arguments are whole
    finish,      // finish, stop_reason; the last event of its choice
  };
  Kind kind = Kind::content;
  int32_t choice = 0;
  std::string text;
  std::vector<TokenLogprobs> logprobs;
  int32_t tool_index = -1;
  std::string name, name_space;
  std::string tool_id;  // random letters and digits; protocols put their prefix before it
  Finish finish = Finish::stop;
  Json stop_reason;        // the stop string or token id that ended the choice; null for end of text
  double sum_logprob = 0;  // of finish: over all tokens, where logprobs were asked for
  int32_t n_tokens = 0;    // of finish
};

struct Usage {
  int32_t prompt_tokens = 0;  // of all prompts, each counted once
  int32_t completion_tokens = 0, reasoning_tokens = 0;
  int32_t cached_tokens = 0;
};

// Of one request, from the moment its body was there. Microseconds; -1: did not come to that.
struct Timings {
  int64_t tokenize_us = 0;      // rendering and tokenizing the prompt
  int64_t queue_us = 0;         // until the engine took it up
  int64_t first_token_us = -1;  // until the first token
  int64_t total_us = 0;
};

// Receives the reply of one request. Called by one thread at a time; after done() or error() nothing follows.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual void event(const ReplyEvent& event) = 0;
  // All events of one engine step were delivered: a good moment to send.
  virtual void flush() = 0;
  virtual void done(const Usage& usage, const Timings& timings) = 0;  // every choice had its finish
  virtual void error(const ApiError& error) = 0;                      // instead of done()
};

}  // namespace gannet::server
