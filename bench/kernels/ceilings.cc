#include "ceilings.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <ctime>

namespace gannet::bench {
namespace {

std::atomic<uint64_t> sink{0};  // keeps results alive

__attribute__((target("avx512f"))) uint64_t read_avx512(const std::byte* p, int64_t bytes) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (int64_t i = 0; i + 256 <= bytes; i += 256) {
    a = _mm512_xor_si512(a, _mm512_loadu_si512(p + i));
    b = _mm512_xor_si512(b, _mm512_loadu_si512(p + i + 64));
    c = _mm512_xor_si512(c, _mm512_loadu_si512(p + i + 128));
    d = _mm512_xor_si512(d, _mm512_loadu_si512(p + i + 192));
  }
  alignas(64) uint64_t lane[8];
  _mm512_store_si512(lane, _mm512_xor_si512(_mm512_xor_si512(a, b), _mm512_xor_si512(c, d)));
  return lane[0] ^ lane[7];
}

uint64_t read_plain(const std::byte* p, int64_t bytes) {
  uint64_t a[4] = {};
  for (int64_t i = 0; i + 32 <= bytes; i += 32)
    for (int j = 0; j < 4; ++j) {
      uint64_t word = 0;
      std::memcpy(&word, p + i + 8 * j, 8);
      a[j] ^= word;
    }
  return a[0] ^ a[1] ^ a[2] ^ a[3];
}

__attribute__((target("avx512f"))) float fma_avx512(int64_t n) {
  __m512 acc[12];
  for (auto& a : acc) a = _mm512_set1_ps(1);
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm512_fmadd_ps(a, x, y);
  float total = 0;
  for (const auto& a : acc) {
    alignas(64) float lane[16];
    _mm512_store_ps(lane, a);
    total += lane[0];
  }
  return total;
}

__attribute__((target("avx2,fma"))) float fma_avx2(int64_t n) {
  __m256 acc[12];
  for (auto& a : acc) a = _mm256_set1_ps(1);
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm256_fmadd_ps(a, x, y);
  float total = 0;
  for (const auto& a : acc) total += _mm256_cvtss_f32(a);
  return total;
}

double read_gbps(ThreadPool& pool, const CpuFeatures& cpu, int64_t bytes, int rounds) {
  auto* memory = static_cast<std::byte*>(
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 0;
  (void)::madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  std::memset(memory, 1, static_cast<size_t>(bytes));
  const double seconds = fastest_seconds(rounds, [&] {
    pool.parallel_for(bytes, int64_t{1} << 20, [&](int64_t begin, int64_t end) {
      sink += cpu.avx512 ? read_avx512(memory + begin, end - begin) : read_plain(memory + begin, end - begin);
    });
  });
  ::munmap(memory, static_cast<size_t>(bytes));
  return static_cast<double>(bytes) / seconds * 1e-9;
}

}  // namespace

bool use_cpu_clock = false;

double now_seconds() {
  timespec t{};
  ::clock_gettime(use_cpu_clock ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

Ceilings measure_ceilings(ThreadPool& pool, const CpuFeatures& cpu) {
  Ceilings c;
  c.read_cached_gbps = read_gbps(pool, cpu, int64_t{96} << 20, 15);
  c.read_memory_gbps = read_gbps(pool, cpu, int64_t{1} << 30, 3);
  if (!cpu.avx2) return c;
  constexpr int64_t kLoops = 2'000'000;
  const double seconds = fastest_seconds(9, [&] {
    pool.run([&](int) { sink += static_cast<uint64_t>(cpu.avx512 ? fma_avx512(kLoops) : fma_avx2(kLoops)); });
  });
  c.fma_gflops = 2.0 * 12 * kLoops * (cpu.avx512 ? 16 : 8) * pool.size() / seconds * 1e-9;
  return c;
}

}  // namespace gannet::bench
