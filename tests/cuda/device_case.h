// What device tests share: the device, and host matrices with their copies in device memory, canaries included.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "runtime/device.h"
#include "support/kernels.h"

namespace gannet::test {

// Opened once. Tests skip, and say why, where there is none.
inline Device* device() {
  static const Result<std::unique_ptr<Device>> opened = Device::open(0, int64_t{40} << 30);
  if (!opened) std::printf("%s\n", opened.error().message.c_str());
  return opened ? opened->get() : nullptr;
}

// Memory that lives as long as the case: the arena is taken back at its end.
class DeviceCase {
 public:
  DeviceCase() : arena_(memory(), kBytes), scope_(arena_), pool(1, false) {}
  Machine machine() const {
    Machine m = this_machine();
    m.device = device();
    return m;
  }
  Exec exec() { return {pool, arena_, device()->stream()}; }
  Arena& arena() { return arena_; }

  template <class T>
  T* put(const T* host, int64_t n) {
    T* at = reinterpret_cast<T*>(allocate(n * static_cast<int64_t>(sizeof(T))));
    device()->upload(at, host, n * static_cast<int64_t>(sizeof(T)));
    return at;
  }
  template <class T>
  T* put(const std::vector<T>& host) {
    return put(host.data(), static_cast<int64_t>(host.size()));
  }
  std::byte* allocate(int64_t bytes) {
    arena_.allocate(256 - arena_.used_bytes() % 256);  // the next address lies on 256 bytes or 64 behind one
    return arena_.allocate(bytes);
  }
  // Rows on 16 bytes, as weights are placed for models.
  WeightView put(const WeightView& w) {
    WeightView v = w;
    const int64_t row = weight_row_bytes(w), padded = (row + 15) / 16 * 16;
    std::vector<std::byte> codes(static_cast<size_t>(padded * w.out));
    for (int64_t o = 0; o < w.out; ++o)
      std::memcpy(codes.data() + o * padded, w.codes + o * w.row_bytes, static_cast<size_t>(row));
    v.codes = put(codes);
    v.row_bytes = padded;
    if (w.scales != nullptr) {
      const int64_t rows = w.format == WeightFormat::fp8_32x32 ? (w.out + 31) / 32 : w.out;
      v.scales = put(w.scales, rows * w.scale_row_bytes);
    }
    return v;
  }

 private:
  static int64_t weight_row_bytes(const WeightView& w) {
    const WeightFormatInfo& info = weight_format_info(w.format);
    return int64_t{w.in} / info.block_elements * info.block_bytes;
  }
  static constexpr int64_t kBytes = int64_t{3} << 30;
  static std::byte* memory() {
    static std::byte* at = device()->allocate(kBytes);
    return at;
  }
  Arena arena_;
  Arena::Scope scope_;

 public:
  ThreadPool pool;
};

// A Matrix and its twin on the device: the whole memory travels, so canaries do too.
class DeviceMatrix {
 public:
  DeviceMatrix(DeviceCase& c, Matrix& host) : host_(host), at_(c.put(host.memory(), host.memory_bytes())) {}
  View view() { return moved(host_.view()); }
  View heads(int64_t n) { return moved(host_.heads(n)); }
  void fetch() { device()->download(host_.memory(), at_, host_.memory_bytes()); }

 private:
  View moved(View v) {
    v.data = at_ + (v.data - host_.memory());
    return v;
  }
  Matrix& host_;
  std::byte* at_;
};

#define GANNET_NEEDS_DEVICE() \
  if (test::device() == nullptr) GTEST_SKIP() << "no CUDA device"

}  // namespace gannet::test
