// A runner without a model: emits the token ids that a script chooses, after the time that it chooses, or fails. For
// tests and measurements of everything above the model. It checks what the engine hands over as a model would: every
// row needs a block, positions of a sequence follow each other.
#pragma once

#include <functional>
#include <memory>

#include "engine/step_runner.h"

namespace gannet::engine {

struct ScriptedToken {
  int32_t token = 0;
  std::string error;  // this request fails instead
};

struct Script {
  // The token at index `n_generated` of the answer to `prompt`. Called on the thread that runs steps.
  std::function<ScriptedToken(const std::vector<int32_t>& prompt, int32_t n_generated)> token;
  // Called when a step begins, before anything is sampled; may wait as long as the step should take. A text that is
  // not empty fails the whole step. May be unset.
  std::function<std::string(const StepWork& work)> before_step;
};

struct ScriptedOptions {
  int32_t vocab = 256;
  int32_t block_tokens = 16;
  int32_t n_blocks = 1024, n_slots = 16;
  int32_t max_rows = 512;
  int32_t max_context = 4096;
};

class ScriptedRunner : public StepRunner {
 public:
  ScriptedRunner(const ScriptedOptions& options, Script script);
  const RunnerInfo& info() const override { return info_; }
  StepResult run(const StepWork& work) override;

 private:
  void check(const SeqWork& seq) const;
  SeqResult sample(SampleState& state) const;

  RunnerInfo info_;
  Script script_;
};

}  // namespace gannet::engine
