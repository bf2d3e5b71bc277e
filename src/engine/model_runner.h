// Runs steps on a model: executor and sampler joined. Sampling follows the forward pass on the same thread, so the
// token that the next step waits for is there before that step begins.
#pragma once

#include <memory>

#include "engine/executor.h"
#include "engine/step_runner.h"

namespace gannet::engine {

class ModelRunner : public StepRunner {
 public:
  // Borrows the model, which must outlive this.
  static Result<std::unique_ptr<ModelRunner>> create(Model& model, const Machine& machine,
                                                     const ExecutorOptions& options);
  const RunnerInfo& info() const override { return info_; }
  StepResult run(const StepWork& work) override;

 private:
  ModelRunner(Model& model, const Machine& machine, std::unique_ptr<Executor> executor);
  SeqResult sample(SampleState& state, View logits);

  std::unique_ptr<Executor> executor_;
  sample::Sampler sampler_;
  RunnerInfo info_;
};

}  // namespace gannet::engine
