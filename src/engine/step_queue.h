// Steps on their way: runs a StepRunner on a thread of its own, so that the next step can be planned meanwhile.
// Synchronous where it was made so: then a step runs on the caller's thread, inside retire().
// Owner: the engine thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/step_runner.h"

namespace gannet::engine {

class StepQueue {
 public:
  StepQueue(std::unique_ptr<StepRunner> runner, bool asynchronous);
  ~StepQueue();  // runs what was launched, first
  StepQueue(const StepQueue&) = delete;
  StepQueue& operator=(const StepQueue&) = delete;

  // Hands a step over; never waits.
  void launch(StepWork work);
  // The oldest step that was launched and not retired, once it has run. There must be one.
  StepResult retire();
  int in_flight() const { return in_flight_; }
  int64_t n_launched() const { return n_launched_.load(); }  // for any thread
  const StepRunner& runner() const { return *runner_; }

 private:
  void work();

  std::unique_ptr<StepRunner> runner_;
  int in_flight_ = 0;
  std::atomic<int64_t> n_launched_{0};

  std::mutex mutex_;
  std::condition_variable launched_, ran_;
  std::deque<StepWork> waiting_;
  std::deque<StepResult> done_;
  bool stop_ = false;
  std::thread thread_;  // not running when synchronous
};

}  // namespace gannet::engine
