// Runs steps of one model on this machine's CPU or on one device: owns the KV memory, the arena and the thread
// pool, and turns a host-side description of a step into the arrays that a model takes.
//
// On a device a step is one upload of its arrays, the model's launches and one download of logits. Steps of one row
// a sequence (decode) are recorded as a graph on their second run, one for each number of rows, and replayed: all
// that changes between such steps lies in device memory. Owner: the engine thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads.h"
#include "kv/store/kv_store.h"
#include "model/model.h"

namespace gannet::engine {

// One sequence's part of a step. Spans are read during run() only.
struct SeqChunk {
  int32_t slot = 0;                      // its ring slot
  std::span<const int32_t> block_table;  // KV blocks of the sequence, in order; covers first_pos + tokens.size()
  std::span<const int32_t> tokens;       // rows, at positions first_pos, first_pos + 1, ...
  int32_t first_pos = 0;
  int32_t end = 0;       // declared end T of the prompt, the same for all its chunks: logits are
                         // wanted from position T - 1 on (for the last k of a prompt: T - k + 1)
  int32_t n_logits = 0;  // logits wanted for the last n_logits rows of this chunk
};

struct ExecutorOptions {
  int32_t n_blocks = 0;  // of KvSpec::block_tokens tokens each
  int32_t n_slots = 1;
  int32_t max_rows = 512;       // of one step
  int32_t max_logit_rows = 64;  // of one step
  int32_t max_context = 0;      // no position reaches this
  int n_threads = 0;            // < 1: every CPU of the process
  Device* device = nullptr;     // where the model's weights lie; nullptr: the CPU
  bool graphs = true;           // of device steps; the results are the same
};

class Executor {
 public:
  // Borrows the model, which must outlive this.
  static Result<std::unique_ptr<Executor>> create(Model& model, const ExecutorOptions& options);

  // Runs one step; at most max_rows rows and max_logit_rows logits. Returns f32 [sum of n_logits, vocab] in the
  // order of the chunks, valid until the next call.
  View run(std::span<const SeqChunk> chunks);

  // Forgets the recent rows of a slot. Blocks need no clearing: rows are overwritten before they are read.
  void reset_slot(int32_t slot) { store_.reset_slot(slot); }

  const ExecutorOptions& options() const { return options_; }
  const Model& model() const { return model_; }
  kv::KvStore& store() { return store_; }
  int n_threads() const { return pool_.size(); }
  int64_t peak_workspace_bytes() const { return arena_.peak_bytes(); }

 private:
  Executor(Model& model, const ExecutorOptions& options, kv::KvStore store);
  void fill_arrays(std::span<const SeqChunk> chunks, Step& step, std::vector<SeqRows>& plan);

  // Steps on the device.
  void start_on_device(const Step& step, View logits);
  void send(Step& step);
  struct DecodeGraph {
    bool warm = false;  // ran once: kernels are loaded
    std::unique_ptr<DeviceGraph> graph;
  };

  Model& model_;
  ExecutorOptions options_;
  kv::KvStore store_;
  ThreadPool pool_;
  Arena arena_;
  std::vector<float> logits_;
  std::byte* device_arrays_ = nullptr;  // the step's arrays
  int64_t device_arrays_bytes_ = 0;
  float* device_logits_ = nullptr;
  std::vector<std::byte> staged_;
  std::map<int32_t, DecodeGraph> graphs_;  // by number of rows

  // Arrays of the current step.
  std::vector<int32_t> row_seq_, row_pos_, row_token_, logit_rows_;
  std::vector<uint8_t> row_flags_;
  std::vector<int32_t> seq_first_row_, seq_first_pos_, seq_n_rows_, seq_end_, seq_slot_, block_table_;
};

}  // namespace gannet::engine
