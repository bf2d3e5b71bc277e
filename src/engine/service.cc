#include "engine/service.h"

#include <utility>

#include "engine/clock.h"

namespace gannet::engine {
namespace {

ServiceEvent failed(Ticket ticket, const Error& error) {
  ServiceEvent event;
  event.ticket = ticket;
  event.token.finished = FinishReason::failed;
  event.token.error = error.message;
  event.error_code = error.code;
  return event;
}

ServiceEvent aborted(Ticket ticket) {
  ServiceEvent event;
  event.ticket = ticket;
  event.aborted = true;
  return event;
}

}  // namespace

Service::Service(std::unique_ptr<Engine> engine)
    : engine_(std::move(engine)), max_context_(engine_->options().max_context) {
  publish_counts();
  thread_ = std::thread([this] { loop(); });
}

Service::~Service() { stop(); }

Ticket Service::submit(GenerateRequest request, EventCallback callback) {
  std::unique_lock lock(mutex_);
  const Ticket ticket{next_ticket_++};
  if (stop_ || draining_) {
    lock.unlock();
    callback(aborted(ticket));
    return ticket;
  }
  ++n_open_;
  submissions_.push_back({ticket, std::move(request), std::move(callback), now_us()});
  lock.unlock();
  wake_.notify_one();
  return ticket;
}

void Service::abort(Ticket ticket) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    aborts_.push_back(ticket);
  }
  wake_.notify_one();
}

void Service::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

int64_t Service::drain(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  all_ended_.wait_for(lock, longest, [this] { return n_open_ == 0; });
  const int64_t cut_off = n_open_;
  lock.unlock();
  stop();
  return cut_off;
}

// A last event is out. Wakes drain().
void Service::note_ended() {
  const std::lock_guard lock(mutex_);
  if (--n_open_ == 0) all_ended_.notify_all();
}

ServiceCounts Service::counts() const {
  const std::lock_guard lock(counts_mutex_);
  return counts_;
}

// Takes what other threads left; waits for it while there is nothing to run.
bool Service::take_commands() {
  std::unique_lock lock(mutex_);
  if (engine_->idle()) wake_.wait(lock, [this] { return stop_ || !submissions_.empty() || !aborts_.empty(); });
  auto submissions = std::exchange(submissions_, {});
  const auto aborts = std::exchange(aborts_, {});
  const bool stop = stop_;
  lock.unlock();
  for (Submission& submission : submissions) {
    const int64_t queue_us = now_us() - submission.submitted_us;
    auto id = engine_->submit(std::move(submission.request));
    if (!id) {
      submission.callback(failed(submission.ticket, id.error()));
      note_ended();
      continue;
    }
    ids_.emplace(submission.ticket, *id);
    running_.emplace(*id, Running{submission.ticket, std::move(submission.callback), queue_us});
  }
  for (const Ticket ticket : aborts) {
    const auto it = ids_.find(ticket);
    if (it == ids_.end()) continue;
    engine_->abort(it->second);
    const auto running = running_.extract(it->second);
    ids_.erase(it);
    running.mapped().callback(aborted(ticket));
    note_ended();
  }
  return !stop;
}

void Service::on_token(const TokenEvent& event) {
  const auto it = running_.find(event.id);
  if (it == running_.end()) return;
  Running& running = it->second;
  ++sampled_tokens_;
  const ServiceEvent out{.ticket = running.ticket,
                         .token = event,
                         .error_code = event.error_code,
                         .cached_tokens = event.cached_tokens,
                         .queue_us = running.queue_us + event.timings.queue_us};
  if (!event.finished) {
    running.callback(out);
    return;
  }
  const auto ended = running_.extract(it);
  ids_.erase(ended.mapped().ticket);
  ended.mapped().callback(out);
  note_ended();
}

void Service::publish_counts() {
  const std::lock_guard lock(counts_mutex_);
  counts_.scheduler = engine_->counts();
  const kv::BlockPool& pool = engine_->pool();
  counts_.kv_blocks_total = pool.size();
  counts_.kv_blocks_held = pool.n_held();
  counts_.kv_blocks_kept = pool.n_kept();
  counts_.sampled_tokens = sampled_tokens_;
  counts_.steps = steps_;
}

void Service::loop() {
  while (take_commands()) {
    if (engine_->step([this](const TokenEvent& event) { on_token(event); })) ++steps_;
    publish_counts();
  }
  for (auto& [id, running] : std::exchange(running_, {})) {
    engine_->abort(id);
    running.callback(aborted(running.ticket));
    note_ended();
  }
  ids_.clear();
  while (engine_->step([](const TokenEvent&) {})) {  // steps that were under way give back what they hold
  }
  publish_counts();
}

}  // namespace gannet::engine
