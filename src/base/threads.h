// A pool of pinned worker threads for data-parallel work. Workers spin for at most 50 us after the last job, then
// park. The calling thread takes part, so a pool of 1 starts no thread.
//
// Owner: one thread at a time calls run(). The function must not throw and must not call run() of the same pool.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gannet {

class ThreadPool {
 public:
  // n_threads < 1 takes every CPU of the process. `pin` binds thread i to the i-th allowed CPU (not the caller).
  explicit ThreadPool(int n_threads, bool pin = true);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return n_threads_; }

  // Binds the calling thread to the CPU that the constructor left for it. For the one thread that calls run():
  // unbound, it may land on a worker's CPU, and the two then take turns.
  void pin_caller() const;

  // Calls f(thread_idx) once on each of size() threads and returns when all have returned.
  template <class F>
  void run(const F& f) {
    run_erased([](const void* context, int thread) { (*static_cast<const F*>(context))(thread); }, &f);
  }

  // Splits [0, n) into chunks of `grain` and calls f(begin, end) on them; threads take chunks as they get free.
  // Which thread takes which chunk must not matter to the result.
  template <class F>
  void parallel_for(int64_t n, int64_t grain, const F& f) {
    parallel_chunks(n, grain, [&f](int, int64_t begin, int64_t end) { f(begin, end); });
  }

  // The same with the index of the thread, for workspaces: f(thread_idx, begin, end). A chunk may be larger than
  // `grain` where one thread takes everything.
  template <class F>
  void parallel_chunks(int64_t n, int64_t grain, const F& f) {
    if (n <= 0) return;
    if (n <= grain || n_threads_ == 1) return f(0, int64_t{0}, n);
    next_.store(0, std::memory_order_relaxed);
    run([&](int thread) {
      while (true) {
        const int64_t begin = next_.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= n) return;
        f(thread, begin, begin + grain < n ? begin + grain : n);
      }
    });
  }

 private:
  using Job = void (*)(const void* context, int thread);
  void run_erased(Job job, const void* context);
  void work(int thread);

  int n_threads_;
  int caller_cpu_ = -1;  // -1: pinning was not asked for or would put two threads on one CPU
  std::vector<std::thread> threads_;
  alignas(64) std::atomic<uint64_t> epoch_{0};  // counts jobs; workers wait for it to move
  alignas(64) std::atomic<int> running_{0};     // workers still inside the current job
  alignas(64) std::atomic<int64_t> next_{0};    // first chunk nobody has taken
  std::atomic<bool> stop_{false};
  Job job_ = nullptr;
  const void* context_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> parked_{0};
};

}  // namespace gannet
