// Random weights in memory, in the formats of a list of specs, made on first use.
//
// A byte is a function of (seed, tensor name, offset) alone; tensors that share memory have the bytes of one of
// them. Codes are drawn so that values are finite and of the size that WeightSpec::fill asks for; scales are powers
// of two about it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "files/tensor_info.h"
#include "weights/spec.h"

namespace gannet::weights {

class Synthetic {
 public:
  // See SyntheticOptions.
  Synthetic(std::vector<WeightSpec> specs, uint64_t seed, int64_t max_unique_bytes, int64_t max_bytes);
  ~Synthetic();
  Synthetic(const Synthetic&) = delete;
  Synthetic& operator=(const Synthetic&) = delete;

  // One entry for each tensor a released file would hold: weights and their scales. Their `bytes` stay empty.
  std::span<const files::TensorInfo> tensors() const { return infos_; }
  int64_t total_bytes() const { return total_bytes_; }  // of all tensors, made or not

  // The bytes of one of tensors(). Any thread; one tensor is made once. Aborts the process when memory runs out, as
  // every allocation does.
  std::span<const std::byte> bytes(const files::TensorInfo& tensor);

 private:
  struct Tensor {
    int32_t spec = 0;
    bool is_scale = false;
    int64_t n_bytes = 0;
    int32_t owner = 0;  // the tensor whose memory this one uses; itself unless shared
    std::atomic<std::byte*> data{nullptr};
  };
  std::byte* make(Tensor& tensor, const files::TensorInfo& info);
  void share(int64_t max_bytes);

  std::vector<WeightSpec> specs_;
  uint64_t seed_;
  int64_t max_unique_bytes_;
  int64_t total_bytes_ = 0;
  std::vector<files::TensorInfo> infos_;
  std::deque<Tensor> tensors_;  // a deque, because an atomic does not move
  std::mutex mutex_;
};

}  // namespace gannet::weights
