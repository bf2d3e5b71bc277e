#include "base/threads.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <chrono>

namespace gannet {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cpus.push_back(i);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

void pin_to(pthread_t thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  (void)::pthread_setaffinity_np(thread, sizeof set,
                                 &set);  // a hint: slower, not wrong, without it
}

constexpr auto kSpin = std::chrono::microseconds(50);

}  // namespace

ThreadPool::ThreadPool(int n_threads, bool pin) {
  const std::vector<int> cpus = allowed_cpus();
  n_threads_ = n_threads < 1 ? static_cast<int>(cpus.size()) : n_threads;
  const bool pins = pin && n_threads_ <= static_cast<int>(cpus.size());
  if (pins) caller_cpu_ = cpus[0];
  for (int i = 1; i < n_threads_; ++i) {
    threads_.emplace_back([this, i] { work(i); });
    if (pins) pin_to(threads_.back().native_handle(), cpus[static_cast<size_t>(i)]);
  }
}

void ThreadPool::pin_caller() const {
  if (caller_cpu_ >= 0) pin_to(::pthread_self(), caller_cpu_);
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
    epoch_.fetch_add(1);
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadPool::run_erased(Job job, const void* context) {
  if (n_threads_ == 1) return job(context, 0);
  job_ = job;
  context_ = context;
  running_.store(n_threads_ - 1, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) {
    { const std::lock_guard lock(mutex_); }  // a worker between its last look and its wait holds the mutex
    wake_.notify_all();
  }
  job(context, 0);
  // A worker may have been descheduled when more threads than CPUs run: yield after a while instead of burning its
  // time.
  for (int spins = 0; running_.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < 2000)
      _mm_pause();
    else
      ::sched_yield();
  }
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  while (true) {
    const auto start = std::chrono::steady_clock::now();
    int spins = 0;
    while (epoch_.load(std::memory_order_acquire) == seen) {
      _mm_pause();
      if ((++spins & 63) != 0 || std::chrono::steady_clock::now() - start < kSpin) continue;
      std::unique_lock lock(mutex_);
      parked_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(lock, [&] { return epoch_.load(std::memory_order_seq_cst) != seen; });
      parked_.fetch_sub(1, std::memory_order_relaxed);
    }
    ++seen;
    if (stop_.load()) return;
    job_(context_, thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace gannet
