// DeepSeek-V4.1 behind the model interface: embedding, layers, the boundary of the decoder half, head.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/local/local_experts.h"
#include "kernels/decoder_order.h"
#include "kernels/embedding.h"
#include "kernels/row_gather.h"
#include "model/deepseek_v41/layer.h"
#include "model/model.h"

namespace gannet::deepseek_v41 {

struct Options {
  Numerics numerics = Numerics::precise;
  // Exact trimming: prompt rows enter the decoder half only where a later row needs them. Off: every row runs every
  // layer, as scoring a prompt needs; the bits of what both compute are the same.
  bool trim_decoder = true;
  int n_threads = 0;  // of the pools that will run steps; sizes the workspace. < 1: every CPU
};

class DeepseekV41 final : public Model {
 public:
  // Borrows the checkpoint's memory. `token_map` (token id -> compressed id; empty for a model without Engram) must
  // have an entry for every token and as many different values as the config says. Fails with bad_file.
  static Result<std::unique_ptr<DeepseekV41>> load(const Config& config, const weights::Checkpoint& checkpoint,
                                                   std::vector<int32_t> token_map, const Options& options,
                                                   const Machine& machine);

  const ModelInfo& info() const override { return info_; }
  const kv::KvSpec& kv_spec() const override { return spec_; }
  const Config& config() const { return config_; }
  const CacheMap& cache_map() const { return map_; }

  // Counts of rows by the decoder layers they reach, window-only first. A sequence's Step::seq_end must be
  // SeqRows::end - (n_logits - 1): the same rows then get their logits exactly.
  std::vector<int32_t> plan_rows(std::span<const SeqRows> seqs) const override;
  int64_t workspace_bytes(int32_t max_rows, int32_t max_logit_rows, int32_t max_pos) const override;
  void forward(const Step& step, kv::KvStore& store, View logits, Exec& exec) override;

  // As forward(), and writes the draft model's input: taps, activation type [n_rows, n_taps * C], for the rows with
  // row_wants_taps that reach the tapped layers; other rows stay as they are. Empty view: none.
  void forward(const Step& step, kv::KvStore& store, View logits, View taps, Exec& exec);

  // For tests. nullptr ends it.
  void set_probe(Probe* probe) { probe_ = probe; }

 private:
  DeepseekV41(const Config& config, const Options& options, const TopWeights& top, std::vector<int32_t> token_map,
              const Machine& machine);
  struct Streams {
    View h;      // [N, S, C]
    View pre;    // f32 [N, S]
    View place;  // i32 [rows of the step, 1]: where each of them is now; empty: in the step's order
  };
  Streams start(StepContext& s) const;
  Streams compact(StepContext& s, const Streams& all) const;
  void run_layers(StepContext& s, Streams& x, View taps) const;
  void tap(StepContext& s, int32_t layer, const View& h, const View& taps) const;
  void head(StepContext& s, const Streams& x, View logits) const;

  Config config_;
  Options options_;
  Precision precision_;
  CacheMap map_;
  kv::KvSpec spec_;
  ModelInfo info_;
  int32_t boundary_;  // first decoder layer, n_layers without one
  TopWeights top_;
  EngramIndex engram_index_;
  std::unique_ptr<comm::ExpertParallel> experts_;
  std::vector<std::unique_ptr<Layer>> layers_;
  Planned<Embedding, EmbeddingArgs> embed_;
  Planned<HcStart, HcStartArgs> start_;
  Planned<HcCollapse, HcCollapseArgs> collapse_;
  Planned<HcMean, HcMeanArgs> mean_;
  Planned<DecoderOrder, DecoderOrderArgs> order_;
  Planned<RowGather, RowGatherArgs> gather_;
  Planned<RowGather, RowGatherArgs> scatter_;
  Norm norm_;
  Projection head_;
  Probe* probe_ = nullptr;
};

}  // namespace gannet::deepseek_v41
