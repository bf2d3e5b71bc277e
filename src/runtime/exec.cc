#include "runtime/exec.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace gannet {

Machine this_machine(const std::string& isa_limit) { return {detect_cpu(isa_limit), nullptr}; }

Arena::Arena(int64_t reserve_bytes) : reserve_(reserve_bytes) {
  void* memory = ::mmap(nullptr, static_cast<size_t>(reserve_), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(memory);
}

Arena::Arena(std::byte* memory, int64_t bytes) : base_(memory), reserve_(bytes), owns_(false) {}

Arena::~Arena() {
  if (owns_) ::munmap(base_, static_cast<size_t>(reserve_));
}

std::byte* Arena::allocate(int64_t bytes) {
  const int64_t begin = (used_ + 63) / 64 * 64;
  GANNET_CHECK(bytes >= 0 && bytes <= reserve_ - begin, "arena of {} bytes, {} used, {} more asked", reserve_,
               used_, bytes);
  used_ = begin + bytes;
  peak_ = std::max(peak_, used_);
  return base_ + begin;
}

View Arena::tensor(DType type, std::initializer_list<int64_t> shape) {
  View view(nullptr, type, shape);
  view.data = allocate(view.bytes());
  return view;
}

}  // namespace gannet
