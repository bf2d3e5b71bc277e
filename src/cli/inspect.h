// `gannet inspect PATH`: what is in a model file, and whether it is what its config says. Reads headers, not
// weights.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "weights/checkpoint.h"
#include "weights/validate.h"

namespace CLI {
class App;
}

namespace gannet::cli {

struct InspectOptions {
  std::string path;  // GGUF, safetensors, folder; or a config.json alone: what such a model would need
  bool json = false;
  bool tensors = false;       // list every tensor
  bool check_scales = false;  // also read every scale: reads much of the file
};

// What one model needs and what this machine has, in bytes.
struct MemorySummary {
  int64_t ram_total = 0, ram_available = 0;  // 0 where the system does not say
  int64_t all = 0;                           // every weight
  int64_t core = 0;                          // without routed experts, Engram tables, draft model, vision
  int64_t one_expert = 0, n_experts = 0;     // routed ones of the backbone; 0 for dense models
  int64_t experts_that_fit = 0;              // beside the core, in ram_available
  int64_t cache_per_token = 0;               // of a sequence, bf16 where the model has no cache format of its own
  int64_t cache_per_sequence = 0;            // whatever its length: windows and state
};

struct ModelSummary {
  std::string path, container, family, naming, tokenizer, quantisation;
  int64_t context = 0, vocab = 0, hidden = 0, layers = 0;
  weights::Validation validation;
  std::vector<std::pair<std::string, int64_t>> type_bytes;  // by storage type, falling
  MemorySummary memory;
  double seconds = 0;  // what reading and checking took
};

// Fails when the file cannot be read or its config is refused; a checkpoint that does not fit its config comes back
// with validation.problems.
Result<ModelSummary> summarise(const InspectOptions& options, const weights::Checkpoint& checkpoint);
Result<ModelSummary> summarise_config(const InspectOptions& options);

std::string summary_table(const ModelSummary& summary);
std::string summary_json(const ModelSummary& summary);
std::string tensor_list(const weights::Checkpoint& checkpoint, bool json);  // JSON: one object a line

// Adds the command's flags to `app`; they live as long as the result.
std::shared_ptr<InspectOptions> add_inspect(CLI::App& app);
// Runs the command. 0: valid; 1: unreadable or invalid, with a sentence on stderr.
int inspect(const InspectOptions& options);

}  // namespace gannet::cli
