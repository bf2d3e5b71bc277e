#include "engine/step_queue.h"

#include <utility>

#include "base/check.h"

namespace gannet::engine {

StepQueue::StepQueue(std::unique_ptr<StepRunner> runner, bool asynchronous) : runner_(std::move(runner)) {
  if (asynchronous) thread_ = std::thread([this] { work(); });
}

StepQueue::~StepQueue() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  launched_.notify_one();
  thread_.join();
}

void StepQueue::launch(StepWork work) {
  ++in_flight_;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  ++n_launched_;
  if (thread_.joinable()) launched_.notify_one();
}

StepResult StepQueue::retire() {
  GANNET_CHECK(in_flight_ > 0, "no step was launched");
  --in_flight_;
  if (!thread_.joinable()) {
    const StepWork work = std::move(waiting_.front());
    waiting_.pop_front();
    return runner_->run(work);
  }
  std::unique_lock lock(mutex_);
  ran_.wait(lock, [this] { return !done_.empty(); });
  StepResult result = std::move(done_.front());
  done_.pop_front();
  return result;
}

void StepQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    launched_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const StepWork work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    StepResult result = runner_->run(work);
    lock.lock();
    done_.push_back(std::move(result));
    ran_.notify_one();
  }
}

}  // namespace gannet::engine
