#include "model/llama/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/embedding.h"
#include "kernels/row_gather.h"
#include "model/llama/attention.h"
#include "model/llama/ffn.h"
#include "model/llama/rope_table.h"
#include "weights/resident.h"

namespace gannet::llama {
namespace {

// Workspaces depend on the number of threads, which the executor chooses later. Arena pages cost nothing until
// used.
constexpr int32_t kMaxThreads = 1024;

class Layer {
 public:
  static Result<Layer> load(Loader& loader, int32_t layer) {
    const Config& c = loader.config;
    const std::string name = fmt::format("model.layers.{}.", layer);
    Layer l;
    GANNET_ASSIGN(l.norm_attention_, Norm::load(loader, name + "input_layernorm", c.hidden));
    GANNET_ASSIGN(l.attention_, Attention::load(loader, layer));
    const std::string before_ffn = c.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm";
    GANNET_ASSIGN(l.norm_ffn_, Norm::load(loader, name + before_ffn, c.hidden));
    GANNET_ASSIGN(l.ffn_, FeedForward::load(loader, layer));
    if (c.post_norms) {
      GANNET_ASSIGN(l.norm_attention_out_, Norm::load(loader, name + "post_attention_layernorm", c.hidden));
      GANNET_ASSIGN(l.norm_ffn_out_, Norm::load(loader, name + "post_feedforward_layernorm", c.hidden));
    }
    l.add_ = plan(Add{c.hidden}, loader.machine);
    return l;
  }

  void forward(Pass& pass, View x) const {  // x f32 [T,C], in place
    const Arena::Scope scope(pass.exec.arena);
    const View a = attention_.forward(pass, norm_attention_.forward(pass, x));  // [T,C]
    if (norm_attention_out_) norm_attention_out_->forward(pass, a, a);          // [T,C]
    add_({x, a, x}, pass.exec);                                                 // [T,C]
    const View f = ffn_.forward(pass, norm_ffn_.forward(pass, x));              // [T,C]
    if (norm_ffn_out_) norm_ffn_out_->forward(pass, f, f);                      // [T,C]
    add_({x, f, x}, pass.exec);                                                 // [T,C]
  }

  int64_t workspace_bytes(int32_t rows, int32_t max_pos, int32_t hidden, int32_t n_threads) const {
    return attention_.workspace_bytes(rows, max_pos, n_threads) + ffn_.workspace_bytes(rows, n_threads) +
           int64_t{rows} * hidden * 3 * 4 + 4 * 64;
  }

 private:
  Norm norm_attention_, norm_ffn_;
  std::optional<Norm> norm_attention_out_, norm_ffn_out_;
  Attention attention_;
  FeedForward ffn_;
  Planned<Add, AddArgs> add_;
};

class LlamaModel final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(Loader& loader) {
    const Config& c = loader.config;
    auto m = std::make_unique<LlamaModel>();
    GANNET_ASSIGN(m->embedding_, loader.checkpoint.matrix("model.embed_tokens.weight", c.vocab, c.hidden));
    loader.weight_bytes += m->embedding_.bytes();
    m->embed_ = plan(Embedding{m->embedding_.format, c.hidden, c.embedding_scale}, loader.machine);
    m->embedding_ = weights::resident(m->embedding_, loader.machine);
    for (int32_t l = 0; l < c.n_layers; ++l) {
      GANNET_ASSIGN(m->layers_.emplace_back(), Layer::load(loader, l));
    }
    GANNET_ASSIGN(m->norm_, Norm::load(loader, "model.norm", c.hidden));
    const std::string head = c.tied_embeddings ? "model.embed_tokens" : "lm_head";
    const int64_t before_head = loader.weight_bytes;
    GANNET_ASSIGN(m->head_, Projection::load(loader, head, c.vocab, c.hidden, false));
    if (c.tied_embeddings) loader.weight_bytes = before_head;  // counted as the embedding
    m->gather_ = plan(RowGather{}, loader.machine);
    m->head_dim_ = c.head_dim;
    m->max_threads_ = loader.machine.device != nullptr ? 1 : std::max(kMaxThreads, loader.machine.cpu.n_cores);
    m->frequency_ = rope_frequencies(c.rope, c.head_dim, c.rope_divisors);
    if (!c.is_local.empty()) m->frequency_local_ = rope_frequencies(c.rope_local, c.head_dim, {});
    m->frequency_on_device_ = weights::device_copy(m->frequency_, loader.machine);
    m->frequency_local_on_device_ = weights::device_copy(m->frequency_local_, loader.machine);
    m->describe(loader);
    return std::unique_ptr<Model>(std::move(m));
  }

  const ModelInfo& info() const override { return info_; }
  const kv::KvSpec& kv_spec() const override { return spec_; }

  int64_t workspace_bytes(int32_t max_rows, int32_t max_logit_rows, int32_t max_pos) const override {
    int64_t layer = 0;
    for (const Layer& l : layers_)
      layer = std::max(layer, l.workspace_bytes(max_rows, max_pos, info_.hidden, max_threads_));
    const int64_t head =
        int64_t{max_logit_rows} * info_.hidden * 4 + head_.workspace_bytes(max_logit_rows, max_threads_);
    return int64_t{max_rows} * (info_.hidden + 2 * head_dim_) * 4 + std::max(layer, head) + 6 * 64;
  }

  void forward(const Step& step, kv::KvStore& store, View logits, Exec& exec) override {
    const Arena::Scope scope(exec.arena);
    Pass pass{step, store, exec};
    const View x = pass.tensor(step.n_rows, info_.hidden);                       // [T,C]
    embed_({embedding_, step.row_token, step.row_embed, step.embeds, x}, exec);  // [T,C]
    pass.rope = angles(pass, frequency_, frequency_on_device_);                  // [T,D/2,2]
    pass.rope_local = angles(pass, frequency_local_, frequency_local_on_device_);  // [T,D/2,2]
    for (const Layer& layer : layers_) layer.forward(pass, x);                   // [T,C]
    if (step.n_logit_rows == 0) return;
    const View last = pass.tensor(step.n_logit_rows, info_.hidden);                       // [L,C]
    gather_({x, {step.logit_rows, static_cast<size_t>(step.n_logit_rows)}, last}, exec);  // [L,C]
    norm_.forward(pass, last, last);                                                      // [L,C]
    head_.forward(pass, last, logits);                                                    // [L,V]
  }

 private:
  static const float* angles(Pass& pass, const std::vector<float>& frequency, const float* on_device) {
    if (frequency.empty()) return nullptr;
    const auto n_pairs = static_cast<int32_t>(frequency.size());
    const float* from = on_device != nullptr ? on_device : frequency.data();
    float* table = pass.exec.arena.array<float>(int64_t{pass.step.n_rows} * n_pairs * 2);
    rope_table(pass.step.row_pos, pass.step.n_rows, from, n_pairs, table, pass.exec);
    return table;
  }

  void describe(const Loader& loader) {
    const Config& c = loader.config;
    info_.family = family_name(c.family);
    info_.vocab = c.vocab;
    info_.hidden = c.hidden;
    info_.max_context = c.max_context;
    info_.parameters = c.parameters();
    info_.weight_bytes = loader.weight_bytes;
    spec_.block_tokens = kBlockTokens;
    for (int32_t l = 0; l < c.n_layers; ++l)
      for (const char* name : {"k", "v"})
        spec_.planes.push_back(
            {fmt::format("layers.{}.{}", l, name), 1, c.n_kv_heads * c.head_dim, loader.cache_format});
  }

  ModelInfo info_;
  kv::KvSpec spec_;
  int32_t head_dim_ = 0, max_threads_ = 0;
  std::vector<float> frequency_, frequency_local_;  // [D/2]; local: empty where no layer is
  const float *frequency_on_device_ = nullptr, *frequency_local_on_device_ = nullptr;
  WeightView embedding_;
  Planned<Embedding, EmbeddingArgs> embed_;
  std::vector<Layer> layers_;
  Planned<RowGather, RowGatherArgs> gather_;
  Norm norm_;
  Projection head_;
};

}  // namespace

Result<Config> config_of(const weights::Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return config_from_gguf(*checkpoint.gguf());
  if (checkpoint.config() != nullptr) return config_from_json(*checkpoint.config(), checkpoint.path());
  return Error{Errc::not_found, fmt::format("{}: there is no config.json", checkpoint.path())};
}

Result<std::unique_ptr<Model>> create(const weights::Checkpoint& checkpoint, const Config& config,
                                      Numerics numerics, const Machine& machine) {
  if (machine.device != nullptr && config.n_experts > 0)
    return Error{Errc::unsupported, fmt::format("{}: mixtures of experts of this family do not run on a CUDA device",
                                                checkpoint.path())};
  const RowFormat cache = numerics == Numerics::float32 ? RowFormat::f32 : RowFormat::f16;
  Loader loader{checkpoint, config, machine, cache};
  loader.integer = numerics == Numerics::integer && machine.device == nullptr;
  return LlamaModel::load(loader);
}

}  // namespace gannet::llama
