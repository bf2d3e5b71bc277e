#include "server/choice_stream.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "base/utf8.h"

namespace gannet::server {
namespace {

std::string random_id() {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::array<unsigned char, 24> random{};
  if (::RAND_bytes(random.data(), static_cast<int>(random.size())) != 1)
    for (unsigned char& byte : random) byte = static_cast<unsigned char>(std::random_device()());
  std::string id;
  for (const unsigned char byte : random) id += kLetters[byte % kLetters.size()];
  return id;
}

std::unique_ptr<OutputParser> parser_of(const GenerationRequest& request) {
  if (!request.output) return nullptr;
  const OutputSpec& spec = *request.output;
  return make_output_parser(spec.format, {.start = spec.start, .continues = spec.continues, .tools = spec.tools});
}

}  // namespace

ChoiceStream::ChoiceStream(const Tokenizer& tokenizer, const GenerationRequest& request, int32_t index)
    : tokenizer_(tokenizer),
      request_(request),
      index_(index),
      detokenizer_(tokenizer, {.skip_special = request.skip_special_tokens, .text_start = false}),
      parser_(parser_of(request)),
      stops_(request.stop, request.include_stop),
      thinking_(request.output && request.output->start == OutputStart::reasoning) {}

std::string ChoiceStream::text_of(int32_t token) {
  const std::string_view spelled = tokenizer_.token_bytes(token);
  if (parser_ && is_output_markup(spelled)) return detokenizer_.push_bytes(spelled);
  return detokenizer_.push(token);
}

void ChoiceStream::count_reasoning(std::string_view spelled) {
  if (!thinking_) return;
  reasoning_tokens_ = n_tokens_;
  if (spelled == "</think>") thinking_ = false;
}

void ChoiceStream::push(const sample::Sampled& sampled, std::vector<ReplyEvent>& out) {
  if (ended_) return;
  const int64_t index = n_tokens_++;
  count_reasoning(tokenizer_.token_bytes(sampled.token));
  const std::string text = text_of(sampled.token);
  const bool logprobs = request_.sampling.top_logprobs >= 0;
  if (logprobs) {
    sum_logprob_ += sampled.logprob;
    TokenLogprobs entry{sampled.token, sampled.logprob, sampled.top, content_seen_, chars_seen_};
    if (!parser_)
      waiting_.push_back(std::move(entry));
    else if (!is_output_markup(tokenizer_.token_bytes(sampled.token)))
      pending_.push_back({std::move(entry), index});
  }
  if (!parser_) return content(text, out);
  if (text.empty()) return;
  parsed_.clear();
  parser_->push(text, index, parsed_);
  route(parsed_, out);
}

// Tokens before `before` belong to the event at hand; null: to markup, which shows none.
void ChoiceStream::take_logprobs(int64_t before, std::vector<TokenLogprobs>* into) {
  while (!pending_.empty() && pending_.front().index < before) {
    if (into != nullptr) into->push_back(std::move(pending_.front().logprobs));
    pending_.pop_front();
  }
}

void ChoiceStream::route(std::vector<OutputEvent>& events, std::vector<ReplyEvent>& out) {
  for (OutputEvent& event : events) {
    if (ended_) return;
    if (event.kind == OutputEvent::Kind::content) {
      take_logprobs(event.last_token, &waiting_);
      content(std::move(event.text), out);
      continue;
    }
    ReplyEvent reply{.choice = index_, .text = std::move(event.text), .tool_index = event.tool_index};
    switch (event.kind) {
      case OutputEvent::Kind::reasoning:
        reply.kind = ReplyEvent::Kind::reasoning;
        if (!thinking_ && reasoning_tokens_ == 0) thinking_ = true;  // it thinks without being asked
        if (thinking_) reasoning_tokens_ = n_tokens_;
        take_logprobs(event.last_token, &reply.logprobs);
        break;
      case OutputEvent::Kind::tool_begin:
        // What a stop string might still have wanted of the text before it is text after all.
        if (std::string rest = stops_.flush(); !rest.empty()) {
          content_shown_ += static_cast<int64_t>(rest.size());
          out.push_back({.choice = index_, .text = std::move(rest), .logprobs = std::exchange(waiting_, {})});
        }
        reply.kind = ReplyEvent::Kind::tool_begin;
        reply.name = std::move(event.name);
        reply.name_space = std::move(event.name_space);
        reply.tool_id = random_id();
        take_logprobs(event.last_token, nullptr);
        break;
      default:
        reply.kind =
            event.kind == OutputEvent::Kind::tool_args ? ReplyEvent::Kind::tool_args : ReplyEvent::Kind::tool_end;
        take_logprobs(event.last_token, nullptr);
    }
    const bool last_call =
        event.kind == OutputEvent::Kind::tool_end && request_.output && !request_.output->parallel_calls;
    out.push_back(std::move(reply));
    if (last_call) end(Finish::tool_calls, Json(), out);
  }
}

void ChoiceStream::content(std::string text, std::vector<ReplyEvent>& out) {
  content_seen_ += static_cast<int64_t>(text.size());
  chars_seen_ += count_code_points(text);
  std::string shown = stops_.push(text);
  content_shown_ += static_cast<int64_t>(shown.size());
  if (stops_.found())  // tokens that begin behind the cut are not part of the reply
    std::erase_if(waiting_, [&](const TokenLogprobs& token) { return token.text_offset >= content_shown_; });
  if (!shown.empty())
    out.push_back({.choice = index_, .text = std::move(shown), .logprobs = std::exchange(waiting_, {})});
  if (stops_.found()) end(Finish::stop, Json(stops_.which()), out);
}

void ChoiceStream::finish(bool length, Json stop_reason, std::vector<ReplyEvent>& out) {
  if (ended_) return;
  const std::string rest = detokenizer_.flush();
  OutputEnd how = length ? OutputEnd::length : OutputEnd::stop;
  if (parser_) {
    parsed_.clear();
    // A character that the limit cut may be the middle of a marker: it is left out rather than shown as U+FFFD.
    if (!rest.empty() && !length) parser_->push(rest, std::max(0, n_tokens_ - 1), parsed_);
    how = parser_->finish(length, parsed_);
    route(parsed_, out);
  } else if (!rest.empty()) {
    content(rest, out);
  }
  if (ended_) return;
  std::string held = stops_.flush();
  content_shown_ += static_cast<int64_t>(held.size());
  if (!held.empty() || !waiting_.empty())
    out.push_back({.choice = index_, .text = std::move(held), .logprobs = std::exchange(waiting_, {})});
  end(how == OutputEnd::length       ? Finish::length
      : how == OutputEnd::tool_calls ? Finish::tool_calls
                                     : Finish::stop,
      std::move(stop_reason), out);
}

void ChoiceStream::end(Finish finish, Json stop_reason, std::vector<ReplyEvent>& out) {
  ended_ = true;
  out.push_back({.kind = ReplyEvent::Kind::finish,
                 .choice = index_,
                 .finish = finish,
                 .stop_reason = std::move(stop_reason),
                 .sum_logprob = sum_logprob_,
                 .n_tokens = n_tokens_});
}

}  // namespace gannet::server
