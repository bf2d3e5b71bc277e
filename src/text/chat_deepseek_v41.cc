#include "text/chat_deepseek_v41.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/chat_dsml.h"
#include "text/span_writer.h"

namespace gannet {
namespace {

namespace v41 = deepseek_v41;

// One part of a user turn: something the user said, or the result of a call.
struct TurnPart {
  const ChatMessage* source;
  const ContentBlock* block;  // null: the result of a tool, the whole of `source`
};

// A turn as it is rendered: tool results and user messages that follow each other are one.
struct Turn {
  const ChatMessage* first;
  Role role;  // never tool
  std::vector<TurnPart> parts;
  ChatTask task = ChatTask::none;
};

std::string_view task_token(ChatTask task) {
  switch (task) {
    case ChatTask::none:
      break;
    case ChatTask::action:
      return "<｜action｜>";
    case ChatTask::query:
      return "<｜query｜>";
    case ChatTask::authority:
      return "<｜authority｜>";
    case ChatTask::domain:
      return "<｜domain｜>";
    case ChatTask::title:
      return "<｜title｜>";
    case ChatTask::read_url:
      return "<｜read_url｜>";
  }
  return {};
}

// A system message without text, which gets no turn.
bool says_nothing(const ChatMessage& message) { return message.role == Role::system && message.blocks_empty(); }

std::vector<Turn> merged_turns(const std::vector<ChatMessage>& messages) {
  std::vector<Turn> turns;
  for (const ChatMessage& message : messages) {
    if (says_nothing(message)) continue;
    const bool user_side = message.role == Role::user || message.role == Role::tool;
    const bool joins = user_side && !turns.empty() && turns.back().role == Role::user &&
                       (message.role == Role::tool || turns.back().task == ChatTask::none);
    if (!joins) turns.push_back({&message, user_side ? Role::user : message.role, {}, message.task});
    Turn& turn = turns.back();
    if (message.role == Role::tool) {
      turn.parts.push_back({&message, nullptr});
      continue;
    }
    for (const ContentBlock& block : message.blocks) turn.parts.push_back({&message, &block});
  }
  return turns;
}

// Results of one turn stand in the order of the calls they answer; what else is in the turn keeps its place. An
// unknown id counts as the first call's.
void sort_results(Turn& turn, const std::vector<ChatToolCall>& calls) {
  std::vector<TurnPart> results;
  for (const TurnPart& part : turn.parts)
    if (part.block == nullptr) results.push_back(part);
  if (results.size() < 2) return;
  const auto place = [&](const TurnPart& part) {
    const auto at = std::ranges::find(calls, part.source->tool_call_id, &ChatToolCall::id);
    return at == calls.end() ? std::ptrdiff_t{0} : at - calls.begin();
  };
  std::vector<std::pair<std::ptrdiff_t, TurnPart>> keyed;  // ids are looked up once each, not once a comparison
  keyed.reserve(results.size());
  for (const TurnPart& part : results) keyed.emplace_back(place(part), part);
  std::ranges::stable_sort(keyed, {}, &std::pair<std::ptrdiff_t, TurnPart>::first);
  size_t next = 0;
  for (TurnPart& part : turn.parts)
    if (part.block == nullptr) part = keyed[next++].second;
}

class Encoder {
 public:
  explicit Encoder(const Conversation& conversation) : conversation_(conversation) {}

  Result<EncodedChat> run() {
    if (conversation_.messages.empty()) return Error{Errc::bad_request, "messages: holds no message"};
    turns_ = merged_turns(conversation_.messages);
    const std::vector<ChatToolCall>* calls = nullptr;
    for (Turn& turn : turns_) {
      if (!turn.first->tool_calls.empty()) calls = &turn.first->tool_calls;
      if (turn.role == Role::user && calls != nullptr) sort_results(turn, *calls);
    }
    GANNET_TRY(write_opening());
    for (size_t i = 0; i < turns_.size(); ++i) GANNET_TRY(write_turn(i));
    write_closing();
    return EncodedChat{out_.take(), std::move(images_), start_};
  }

 private:
  // Whether the assistant turn `i` shows reasoning: with tools every one does, without only the one that the model
  // is about to write (i is then the number of turns, or an open last turn).
  bool thinks(size_t i) const {
    const bool drops_earlier = conversation_.tools.empty() && conversation_.thinking.drop_earlier;
    const bool written_now = i == turns_.size() || turns_[i].first->open;
    return conversation_.thinking.on && (!drops_earlier || written_now);
  }
  bool needs_system() const { return !conversation_.tools.empty() || conversation_.response_format.has_value(); }

  Status write_opening() {
    const bool system_first = !turns_.empty() && turns_[0].role == Role::system;
    out_.own(v41::kBos);
    if (conversation_.thinking.on || system_first || needs_system()) out_.own(v41::kSystem);
    if (conversation_.thinking.on)
      out_.own(fmt::format(
          "Reasoning Effort: {} (range 1-100, the higher the value, the more thorough the reasoning)\n\n",
          conversation_.thinking.effort));
    return system_first ? ok() : write_declarations();
  }

  // What hangs on the system message that opens the prompt, which is an empty one where the client has none.
  Status write_declarations() {
    if (!conversation_.tools.empty()) {
      out_.own("\n\n");
      GANNET_TRY(write_dsml_tools(out_, conversation_.tools));
    }
    if (conversation_.response_format) {
      out_.own("\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n");
      out_.client(conversation_.response_format->dump_python());
    }
    return ok();
  }

  void write_blocks(const std::vector<ContentBlock>& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i > 0) out_.own("\n\n");
      write_block(blocks[i]);
    }
  }

  void write_block(const ContentBlock& block) {
    if (block.kind == ContentBlock::Kind::text) {
      out_.client(block.text);
      return;
    }
    out_.own(v41::kImage);
    images_.push_back(block.image);
  }

  void write_user(const Turn& turn) {
    out_.own(v41::kUser);
    for (size_t i = 0; i < turn.parts.size(); ++i) {
      const TurnPart& part = turn.parts[i];
      if (i > 0) out_.own("\n\n");
      if (part.block != nullptr) {
        write_block(*part.block);
        continue;
      }
      out_.own("<tool_result>");
      write_blocks(part.source->blocks);
      out_.own("</tool_result>");
    }
    if (turn.task != ChatTask::none && turn.task != ChatTask::action) out_.own(task_token(turn.task));
  }

  // Whether the turn before `i` is one that asks for a short completion instead of a reply.
  ChatTask task_before(size_t i) const { return i == 0 ? ChatTask::none : turns_[i - 1].task; }

  void write_header(size_t i) {
    const ChatTask task = task_before(i);
    start_ = OutputStart::content;
    if (task != ChatTask::none && task != ChatTask::action) return;
    const bool thinking = task == ChatTask::action ? conversation_.thinking.on : thinks(i);
    out_.own(v41::kAssistant).own(thinking ? v41::kThink : v41::kEndThink);
    if (task == ChatTask::action) out_.own(task_token(task));
    if (thinking && task == ChatTask::none) start_ = OutputStart::reasoning;
  }

  Status write_assistant(size_t i) {
    const ChatMessage& message = *turns_[i].first;
    write_header(i);
    if (thinks(i) && task_before(i) == ChatTask::none) {
      if (message.reasoning) out_.client(*message.reasoning);
      // A prefix that has no content goes on with its reasoning.
      const bool goes_on =
          message.open && (message.content_absent || (!message.reasoning && message.blocks_empty()));
      if (goes_on) return ok();
      out_.own(v41::kEndThink);
      start_ = OutputStart::content;
    }
    write_blocks(message.blocks);
    if (!message.tool_calls.empty()) {
      out_.own("\n\n");
      GANNET_TRY(write_dsml_calls(out_, message));
    }
    if (!message.open) out_.own(v41::kEos);
    return ok();
  }

  Status write_turn(size_t i) {
    const Turn& turn = turns_[i];
    switch (turn.role) {
      case Role::system:
        if (i > 0) out_.own(v41::kSystem);
        write_blocks(turn.first->blocks);
        return i == 0 ? write_declarations() : ok();
      case Role::latest_reminder:
        out_.own(v41::kReminder);
        write_blocks(turn.first->blocks);
        return ok();
      case Role::assistant:
        return write_assistant(i);
      case Role::user:
      case Role::tool:
        write_user(turn);
        return ok();
    }
    return ok();
  }

  void write_closing() {
    const bool open = !turns_.empty() && turns_.back().role == Role::assistant && turns_.back().first->open;
    if (!open) write_header(turns_.size());
  }

  const Conversation& conversation_;
  std::vector<Turn> turns_;
  SpanWriter out_;
  std::vector<ImageRef> images_;
  OutputStart start_ = OutputStart::content;
};

class DeepseekV41Encoder final : public ChatEncoder {
 public:
  std::string_view name() const override { return "deepseek_v41"; }
  Result<EncodedChat> encode(const Conversation& conversation) const override {
    return Encoder(conversation).run();
  }
};

}  // namespace

std::unique_ptr<ChatEncoder> make_deepseek_v41_encoder() { return std::make_unique<DeepseekV41Encoder>(); }

std::vector<TextSpan> deepseek_fim_prompt(std::string_view prefix, std::string_view suffix) {
  SpanWriter out;
  out.own(v41::kBos)
      .own("<｜fim▁begin｜>")
      .client(prefix)
      .own("<｜fim▁hole｜>")
      .client(suffix)
      .own("<｜fim▁end｜>");
  return out.take();
}

}  // namespace gannet
