// Offline batch: JSON Lines in, JSON Lines out, many requests at once. Each finished answer is one line, written
// whole; a second run reads the lines that are there and goes on with the rest.
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "base/mapped_file.h"
#include "base/progress.h"
#include "cli/generate.h"
#include "cli/line_editor.h"
#include "cli/run.h"
#include "text/chat_openai.h"
#include "text/detokenizer.h"

namespace gannet::cli {
namespace {

struct Item {
  int64_t line = 0;         // from 1
  std::string fingerprint;  // of the input line: the answer that is there must belong to it
  Json request;
};

std::string fingerprint(std::string_view line) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(line.data()), line.size(), digest);
  std::string text;
  for (int i = 0; i < 8; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Result<std::vector<Item>> read_input(const std::string& path) {
  GANNET_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  std::vector<Item> items;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto json = Json::parse(line);
    if (!json || !json->is_object())
      return Error{Errc::bad_file,
                   fmt::format("{} line {}: {}", path, number, json ? "not a JSON object" : json.error().message)};
    items.push_back({number, fingerprint(line), std::move(*json)});
  }
  return items;
}

// Lines answered by an earlier run. A torn last line (the run was killed) is cut off the file.
Result<std::set<int64_t>> read_done(const std::string& path, const std::vector<Item>& items) {
  std::set<int64_t> done;
  auto text = read_file(path, int64_t{1} << 40);
  if (!text) {
    if (text.error().code == Errc::not_found) return done;
    return text.error();
  }
  std::map<int64_t, std::string> wanted;
  for (const Item& item : items) wanted[item.line] = item.fingerprint;
  const size_t whole = text->rfind('\n') == std::string::npos ? 0 : text->rfind('\n') + 1;
  if (whole < text->size() && ::truncate(path.c_str(), static_cast<off_t>(whole)) != 0)
    return Error{Errc::io, fmt::format("cannot cut the torn last line of {}: {}", path, std::strerror(errno))};
  for (size_t begin = 0; begin < whole;) {
    const size_t end = text->find('\n', begin);
    auto json = Json::parse(std::string_view(*text).substr(begin, end - begin));
    begin = end + 1;
    const Json* line = json ? json->find("line") : nullptr;
    const Json* print = json ? json->find("fingerprint") : nullptr;
    const auto number = line == nullptr ? std::nullopt : line->as_int();
    if (!number || print == nullptr || print->as_string() == nullptr)
      return Error{Errc::bad_file, fmt::format("{} is there and is not the output of a batch", path)};
    const auto want = wanted.find(*number);
    if (want == wanted.end() || want->second != *print->as_string())
      return Error{Errc::bad_file, fmt::format("{} belongs to another input: line {} differs", path, *number)};
    done.insert(*number);
  }
  return done;
}

class Batch {
 public:
  Batch(const RunFlags& flags, Loaded& loaded, sample::SamplingParams sampling, int output)
      : flags_(flags), loaded_(loaded), sampling_(std::move(sampling)), output_(output) {}

  Status run(const std::vector<Item>& items, const std::set<int64_t>& done);
  int64_t n_failed() const { return n_failed_; }
  bool interrupted() const { return interrupted_; }

 private:
  struct Running {
    const Item* item;
    Answer answer;
    std::optional<Detokenizer> text;
  };
  Result<engine::GenerateRequest> request_of(const Item& item) const;
  void on_token(const engine::TokenEvent& event);
  void write(const Item& item, Json result);

  const RunFlags& flags_;
  Loaded& loaded_;
  sample::SamplingParams sampling_;
  int output_;
  std::map<engine::RequestId, Running> running_;
  Status written_ = ok();
  int64_t n_finished_ = 0, n_failed_ = 0;
  bool interrupted_ = false;
};

Result<engine::GenerateRequest> Batch::request_of(const Item& item) const {
  engine::GenerateRequest request;
  request.sampling = sampling_;
  request.max_tokens =
      flags_.sampling.max_tokens > 0 ? flags_.sampling.max_tokens : loaded_.engine->options().max_context;
  for (const auto& [key, value] : item.request.members()) {
    if (key == "id" || value.is_null()) continue;
    if (key == "prompt") {
      if (!value.is_string()) return Error{Errc::bad_request, "prompt must be a string"};
      if (flags_.raw) {
        GANNET_ASSIGN(request.prompt, encode_raw(*loaded_.model, *value.as_string()));
      } else {
        Conversation conversation;
        if (!flags_.system.empty())
          conversation.messages.push_back({.role = Role::system, .blocks = {ContentBlock::of_text(flags_.system)}});
        conversation.messages.push_back(
            {.role = Role::user, .blocks = {ContentBlock::of_text(*value.as_string())}});
        GANNET_TRY(apply_thinking(flags_, conversation));
        GANNET_ASSIGN(request.prompt, encode_chat(*loaded_.model, conversation));
      }
    } else if (key == "messages" || key == "tools") {
      if (!request.prompt.empty()) continue;  // one reading of the line makes the prompt
      GANNET_ASSIGN(Conversation conversation, conversation_from_openai(item.request));
      GANNET_TRY(apply_thinking(flags_, conversation));
      GANNET_ASSIGN(request.prompt, encode_chat(*loaded_.model, conversation));
    } else if (key == "max_tokens") {
      const auto n = value.as_int();
      if (!n || *n < 1 || *n > INT32_MAX)
        return Error{Errc::bad_request,
                     fmt::format("max_tokens is {}, it must be a whole number from 1", value.dump())};
      request.max_tokens = static_cast<int32_t>(*n);
    } else if (key == "temperature") {
      const auto t = value.as_double();
      if (!t) return Error{Errc::bad_request, fmt::format("temperature is {}, it must be a number", value.dump())};
      request.sampling.temperature = *t;
    } else if (key == "seed") {
      const auto seed = value.as_int();
      if (!seed)
        return Error{Errc::bad_request, fmt::format("seed is {}, it must be a whole number", value.dump())};
      request.sampling.seed = static_cast<uint64_t>(*seed);
    } else {
      return Error{
          Errc::bad_request,
          fmt::format(
              "field '{}' is not known; known are id, prompt, messages, tools, max_tokens, temperature, seed",
              key)};
    }
  }
  if (request.prompt.empty()) return Error{Errc::bad_request, "there is neither prompt nor messages"};
  const auto& stops = loaded_.model->stop_ids;
  request.sampling.stop_token_ids.insert(request.sampling.stop_token_ids.end(), stops.begin(), stops.end());
  return request;
}

void Batch::write(const Item& item, Json result) {
  Json line = Json::object();
  line.set("line", item.line);
  if (const Json* id = item.request.find("id")) line.set("id", *id);
  line.set("fingerprint", item.fingerprint);
  for (auto& [key, value] : result.members()) line.set(key, std::move(value));
  const std::string text = line.dump() + "\n";
  const ssize_t n = ::write(output_, text.data(), text.size());
  if (n == static_cast<ssize_t>(text.size())) {
    ++n_finished_;
    return;
  }
  // What was written of the line is torn; the next run cuts it off.
  written_ = Error{Errc::io, fmt::format("cannot write {}: {}", flags_.output,
                                         n < 0 ? std::strerror(errno) : "the disk is full")};
}

void Batch::on_token(const engine::TokenEvent& event) {
  const auto it = running_.find(event.id);
  if (it == running_.end()) return;
  Running& running = it->second;
  const bool failed = event.finished == engine::FinishReason::failed;
  const bool stopped = event.finished == engine::FinishReason::stop;
  if (!failed && !stopped) {
    running.answer.token_ids.push_back(event.sampled.token);
    if (running.text) running.answer.text += running.text->push(event.sampled.token);
  }
  if (!event.finished) return;
  Json result = Json::object();
  if (failed) {
    ++n_failed_;
    result.set("error", event.error);
  } else {
    if (running.text) running.answer.text += running.text->flush();
    result.set("text", running.answer.text);
    Json& ids = result.set("token_ids", Json::array());
    for (const int32_t id : running.answer.token_ids) ids.push(id);
    result.set("finish_reason", stopped ? "stop" : "length");
    result.set("prompt_tokens", running.answer.n_prompt);
  }
  write(*running.item, std::move(result));
  running_.erase(it);
}

Status Batch::run(const std::vector<Item>& items, const std::set<int64_t>& done) {
  Progress progress("answers", static_cast<int64_t>(items.size()));
  int64_t n_before = 0;
  size_t next = 0;
  while (written_ && !interrupted_) {
    // Twice the batch in the queue keeps the scheduler choosing; the rest waits here, as text.
    while (next < items.size() && running_.size() < 2 * static_cast<size_t>(flags_.batch)) {
      const Item& item = items[next++];
      if (done.contains(item.line)) {
        ++n_before;
        continue;
      }
      auto request = request_of(item);
      const auto n_prompt = request ? static_cast<int32_t>(request->prompt.size()) : 0;
      auto id = request ? loaded_.engine->submit(std::move(*request)) : Result<engine::RequestId>(request.error());
      if (!id) {
        ++n_failed_;
        Json result = Json::object();
        result.set("error", id.error().message);
        write(item, std::move(result));
        continue;
      }
      Running& running = running_[*id];
      running.item = &item;
      running.answer.n_prompt = n_prompt;
      if (loaded_.model->tokenizer)
        running.text.emplace(*loaded_.model->tokenizer, DetokenizeOptions{.text_start = false});
    }
    if (!loaded_.engine->step([this](const engine::TokenEvent& event) { on_token(event); })) break;
    progress.set(n_before + n_finished_);
    interrupted_ = take_interrupt();
  }
  return written_;
}

}  // namespace

int run_batch(const RunFlags& flags, Loaded& loaded) {
  auto sampling = sampling_params(flags.sampling);
  if (!sampling) return fail(sampling.error());
  const auto items = read_input(flags.input);
  if (!items) return fail(items.error());
  const auto done = read_done(flags.output, *items);
  if (!done) return fail(done.error());
  const int output = ::open(flags.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) return fail({Errc::io, fmt::format("cannot open {}: {}", flags.output, std::strerror(errno))});
  install_interrupt_handler();
  Batch batch(flags, loaded, std::move(*sampling), output);
  Status status = batch.run(*items, *done);
  if (::fsync(output) != 0 && errno != EINVAL && status)
    status = Error{Errc::io, fmt::format("cannot sync {}: {}", flags.output, std::strerror(errno))};
  ::close(output);
  if (!status) return fail(status.error());
  if (batch.interrupted()) return fail({Errc::cancelled, "interrupted; run it again to go on"}) + 129;
  if (batch.n_failed() > 0)
    return fail({Errc::bad_request, fmt::format("{} of {} lines have an error, see {}", batch.n_failed(),
                                                items->size(), flags.output)});
  return 0;
}

}  // namespace gannet::cli
