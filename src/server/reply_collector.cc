#include "server/reply_collector.h"

#include <utility>

namespace gannet::server {

void ReplyCollector::add(const ReplyEvent& event) {
  WholeChoice& choice = choices_[static_cast<size_t>(event.choice)];
  switch (event.kind) {
    case ReplyEvent::Kind::content:
      choice.content += event.text;
      choice.content_logprobs.insert(choice.content_logprobs.end(), event.logprobs.begin(), event.logprobs.end());
      break;
    case ReplyEvent::Kind::reasoning:
      choice.reasoning += event.text;
      choice.reasoning_logprobs.insert(choice.reasoning_logprobs.end(), event.logprobs.begin(),
                                       event.logprobs.end());
      break;
    case ReplyEvent::Kind::tool_begin:
      choice.calls.push_back({event.tool_id, event.name, event.name_space, {}});
      break;
    case ReplyEvent::Kind::tool_args:
      choice.calls.back().arguments += event.text;
      break;
    case ReplyEvent::Kind::tool_end:
      choice.calls.back().ended = true;
      break;
    case ReplyEvent::Kind::finish:
      choice.finish = event.finish;
      choice.stop_reason = event.stop_reason;
      choice.sum_logprob = event.sum_logprob;
      choice.n_tokens = event.n_tokens;
      break;
  }
}

std::vector<WholeChoice> ReplyCollector::take() {
  for (WholeChoice& choice : choices_)
    std::erase_if(choice.calls, [](const WholeCall& call) { return !call.ended; });
  return std::exchange(choices_, {});
}

}  // namespace gannet::server
