#include "base/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace gannet {
namespace {

// Linux keeps the 8 KiB AMX tile state off until a process asks for it.
bool request_amx() {
  constexpr long kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
  return ::syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

std::string brand() {
  char text[49] = {};
  unsigned regs[4];
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    if (!__get_cpuid(0x80000002u + leaf, &regs[0], &regs[1], &regs[2], &regs[3])) return "unknown CPU";
    std::memcpy(text + 16 * leaf, regs, 16);
  }
  return text;
}

// Clang 16 has no name for it.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1u);
}

}  // namespace

CpuFeatures detect_cpu(const std::string& limit) {
  CpuFeatures cpu;
  cpu.name = brand();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) cpu.n_cores = CPU_COUNT(&set);
  if (limit == "scalar") return cpu;
  __builtin_cpu_init();
  cpu.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
             has_f16c();
  if (limit == "avx2") return cpu;
  cpu.avx512 = cpu.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vbmi");
  cpu.avx512_vnni = cpu.avx512 && __builtin_cpu_supports("avx512vnni");
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) cpu.avx512_bf16 = cpu.avx512 && (a >> 5 & 1u);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) cpu.avx512_fp16 = cpu.avx512 && (d >> 23 & 1u);
  if (limit == "avx512") return cpu;
  const bool tiles = (d >> 24 & 1u) && request_amx();
  cpu.amx_int8 = tiles && cpu.avx512 && (d >> 25 & 1u);
  cpu.amx_bf16 = tiles && cpu.avx512 && (d >> 22 & 1u);
  return cpu;
}

}  // namespace gannet
