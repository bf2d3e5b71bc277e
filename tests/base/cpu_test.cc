#include "base/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace gannet {
namespace {

// The flags of the first CPU in /proc/cpuinfo: what the kernel found, independent of our CPUID reading.
std::set<std::string> kernel_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) {
      std::istringstream words(line.substr(line.find(':') + 1));
      return {std::istream_iterator<std::string>(words), {}};
    }
  return {};
}

TEST(Cpu, AgreesWithTheKernel) {
  const std::set<std::string> flags = kernel_flags();
  ASSERT_FALSE(flags.empty());
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return flags.contains(name); });
  };
  const CpuFeatures cpu = detect_cpu();
  EXPECT_EQ(cpu.avx2, all({"avx2", "fma", "f16c", "bmi2"}));
  const bool avx512 = cpu.avx2 && all({"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vbmi"});
  EXPECT_EQ(cpu.avx512, avx512);
  EXPECT_EQ(cpu.avx512_vnni, avx512 && all({"avx512_vnni"}));
  EXPECT_EQ(cpu.avx512_bf16, avx512 && all({"avx512_bf16"}));
  EXPECT_EQ(cpu.avx512_fp16, avx512 && all({"avx512_fp16"}));
  EXPECT_TRUE(!cpu.amx_int8 || all({"amx_tile", "amx_int8"}));  // the kernel may refuse the tile state
  EXPECT_TRUE(!cpu.amx_bf16 || all({"amx_tile", "amx_bf16"}));
  EXPECT_FALSE(cpu.name.empty());
}

TEST(Cpu, LimitsCap) {
  const CpuFeatures scalar = detect_cpu("scalar"), avx2 = detect_cpu("avx2"), avx512 = detect_cpu("avx512"),
                    amx = detect_cpu("amx"), all = detect_cpu();
  EXPECT_FALSE(scalar.avx2 || scalar.avx512 || scalar.amx_int8 || scalar.amx_bf16);
  EXPECT_EQ(avx2.avx2, all.avx2);
  EXPECT_FALSE(avx2.avx512 || avx2.avx512_vnni || avx2.avx512_bf16 || avx2.avx512_fp16 || avx2.amx_int8);
  EXPECT_EQ(avx512.avx512, all.avx512);
  EXPECT_EQ(avx512.avx512_vnni, all.avx512_vnni);
  EXPECT_FALSE(avx512.amx_int8 || avx512.amx_bf16);
  EXPECT_EQ(amx.amx_int8, all.amx_int8);
}

TEST(Cpu, CountsTheCpusOfTheProcess) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(detect_cpu().n_cores, CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(detect_cpu().n_cores, 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace gannet
