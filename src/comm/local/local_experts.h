// Expert parallelism of one machine: a counting sort by expert, no communication.
#pragma once

#include "comm/expert_parallel.h"

namespace gannet::comm {

class LocalExperts final : public ExpertParallel {
 public:
  explicit LocalExperts(int32_t n_experts) : n_experts_(n_experts) {}
  int32_t first_local_expert() const override { return 0; }
  int32_t n_local_experts() const override { return n_experts_; }
  Dispatched dispatch(const View& x, const int32_t* expert, const float* weight, int32_t n_chosen,
                      Exec& exec) override;
  void combine(const Dispatched& dispatched, const View& results, View out, Exec& exec) override;
  int64_t workspace_bytes(int32_t max_rows, int32_t n_chosen, int32_t width) const override;

 private:
  int32_t n_experts_;
};

}  // namespace gannet::comm
