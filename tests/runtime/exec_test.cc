#include "runtime/exec.h"

#include <gtest/gtest.h>

#include <cstring>

namespace gannet {
namespace {

TEST(Arena, HandsOutAlignedMemoryThatDoesNotOverlap) {
  Arena arena(1 << 20);
  std::byte* a = arena.allocate(1);
  std::byte* b = arena.allocate(100);
  auto* c = arena.array<double>(3);
  for (const void* p : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(c)})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0U);
  EXPECT_EQ(b - a, 64);
  EXPECT_EQ(reinterpret_cast<std::byte*>(c) - b, 128);
  EXPECT_EQ(arena.used_bytes(), 192 + 24);
}

TEST(Arena, ScopeGivesBackWhatCameAfterIt) {
  Arena arena(1 << 20);
  (void)arena.allocate(10);
  std::byte* first = nullptr;
  {
    const Arena::Scope outer(arena);
    first = arena.allocate(1000);
    {
      const Arena::Scope inner(arena);
      (void)arena.allocate(100000);
    }
    EXPECT_EQ(arena.used_bytes(), 64 + 1000);
  }
  EXPECT_EQ(arena.used_bytes(), 10);
  EXPECT_EQ(arena.allocate(1), first);
  EXPECT_EQ(arena.peak_bytes(), 1088 + 100000);
}

TEST(Arena, TensorIsRowMajor) {
  Arena arena(1 << 20);
  const View v = arena.tensor(DType::bf16, {3, 5, 7});
  EXPECT_EQ(v.stride[0], 35);
  EXPECT_EQ(v.stride[2], 1);
  EXPECT_EQ(arena.used_bytes(), 3 * 5 * 7 * 2);
  std::memset(v.data, 1, static_cast<size_t>(v.bytes()));
  EXPECT_EQ(arena.tensor(DType::f32, {0, 4}).bytes(), 0);
}

TEST(Arena, ReservesWithoutCommitting) {  // far more than the machine has
  Arena arena(int64_t{1} << 42);
  std::byte* p = arena.allocate(int64_t{1} << 41);
  p[0] = std::byte{1};
  EXPECT_EQ(arena.peak_bytes(), int64_t{1} << 41);
}

TEST(ArenaDeathTest, RunningOutAborts) {
  Arena arena(4096);
  (void)arena.allocate(100);
  EXPECT_DEATH((void)arena.allocate(4096 - 127), "arena of 4096 bytes, 100 used, 3969 more asked");
  EXPECT_NE(arena.allocate(4096 - 128), nullptr);
  EXPECT_DEATH((void)arena.allocate(-1), "arena of");
}

TEST(Machine, LimitsOnlyTakeAway) {
  const Machine all = this_machine(), avx2 = this_machine("avx2"), scalar = this_machine("scalar");
  EXPECT_FALSE(scalar.cpu.avx2 || scalar.cpu.avx512 || scalar.cpu.amx_int8);
  EXPECT_FALSE(avx2.cpu.avx512);
  EXPECT_EQ(avx2.cpu.avx2, all.cpu.avx2);
  EXPECT_GE(all.cpu.n_cores, 1);
}

}  // namespace
}  // namespace gannet
