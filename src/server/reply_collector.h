// Folds reply events into whole replies: what an unstreamed request answers with.
#pragma once

#include <string>
#include <vector>

#include "server/reply_event.h"

namespace gannet::server {

struct WholeCall {
  std::string id, name, name_space, arguments;
  bool ended = false;  // false: the token limit cut it, and it must not be run
};

struct WholeChoice {
  std::string content, reasoning;
  std::vector<TokenLogprobs> content_logprobs, reasoning_logprobs;
  std::vector<WholeCall> calls;
  Finish finish = Finish::stop;
  Json stop_reason;
  double sum_logprob = 0;
  int32_t n_tokens = 0;
};

class ReplyCollector {
 public:
  explicit ReplyCollector(int32_t n_choices) : choices_(static_cast<size_t>(n_choices)) {}
  void add(const ReplyEvent& event);
  // Calls that were cut are left out: a client could only run them wrongly.
  std::vector<WholeChoice> take();

 private:
  std::vector<WholeChoice> choices_;
};

}  // namespace gannet::server
