// What this machine can do at most, measured: the bounds that kernel times are held against.
#pragma once

#include "base/cpu.h"
#include "base/threads.h"

namespace gannet::bench {

struct Ceilings {
  double read_cached_gbps = 0;  // 96 MiB read again and again: a small model's weights
  double read_memory_gbps = 0;  // 1 GiB
  double fma_gflops = 0;        // fp32 fused multiply-add in registers, widest vectors present
};
Ceilings measure_ceilings(ThreadPool& pool, const CpuFeatures& cpu);

void pin_caller();  // to the first CPU it may use

// Seconds of the fastest of `rounds` calls of `f`, after one that is not counted.
template <class F>
double fastest_seconds(int rounds, const F& f);

double now_seconds();

// Time the calling thread has run instead of time that has passed: with one thread, what other programs take does
// not count (their use of caches and memory still shows).
extern bool use_cpu_clock;

template <class F>
double fastest_seconds(int rounds, const F& f) {
  f();
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double begin = now_seconds();
    f();
    const double took = now_seconds() - begin;
    best = took < best ? took : best;
  }
  return best;
}

}  // namespace gannet::bench
