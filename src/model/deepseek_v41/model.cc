#include "model/deepseek_v41/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <unordered_set>
#include <utility>

#include "model/deepseek_v41/inventory.h"

namespace gannet::deepseek_v41 {
namespace {

Status check_token_map(const Config& c, const std::vector<int32_t>& map) {
  if (c.engram.layers.empty()) return ok();
  if (static_cast<int64_t>(map.size()) < c.vocab)
    return Error{Errc::bad_file, fmt::format("the Engram token map has {} entries, the model's vocabulary {}",
                                             map.size(), c.vocab)};
  const std::unordered_set<int32_t> distinct(map.begin(), map.end());
  if (static_cast<int64_t>(distinct.size()) != c.engram.compressed_vocab)
    return Error{Errc::bad_file,
                 fmt::format("the tokenizer gives {} Engram ids, engram_compressed_vocab_size is {}: "
                             "every hash depends on that count",
                             distinct.size(), c.engram.compressed_vocab)};
  for (const int32_t id : distinct)
    if (id < 0 || id >= c.engram.compressed_vocab)
      return Error{Errc::bad_file,
                   fmt::format("the Engram token map has id {} of {}", id, c.engram.compressed_vocab)};
  return ok();
}

DecoderOrder order_of(const Config& c) { return {c.window, c.first_decoder_layer(), c.n_layers}; }

}  // namespace

Result<std::unique_ptr<DeepseekV41>> DeepseekV41::load(const Config& config, const weights::Checkpoint& checkpoint,
                                                       std::vector<int32_t> token_map, const Options& options,
                                                       const Machine& machine) {
  GANNET_TRY(check_token_map(config, token_map));
  GANNET_ASSIGN(const TopWeights top, load_top(checkpoint, config));
  std::unique_ptr<DeepseekV41> model(new DeepseekV41(config, options, top, std::move(token_map), machine));
  for (int32_t l = 0; l < config.n_layers; ++l) {
    GANNET_ASSIGN(LayerWeights w, load_layer(checkpoint, config, l));
    model->layers_.push_back(std::make_unique<Layer>(config, l, std::move(w), model->map_, *model->experts_,
                                                     model->precision_, machine));
  }
  model->info_.weight_bytes = checkpoint.payload_bytes();
  InventoryOptions text_only;
  text_only.draft = text_only.vision = false;
  for (const weights::WeightSpec& spec : inventory(config, text_only)) model->info_.parameters += spec.elements();
  return model;
}

DeepseekV41::DeepseekV41(const Config& c, const Options& options, const TopWeights& top,
                         std::vector<int32_t> token_map, const Machine& machine)
    : config_(c),
      options_(options),
      precision_{options.numerics},
      spec_(cache_spec(c, precision_, map_)),
      boundary_(c.first_decoder_layer()),
      top_(top),
      experts_(std::make_unique<comm::LocalExperts>(c.n_experts)) {
  const DType type = precision_.activation();
  info_.family = "deepseek_v41";
  info_.vocab = c.vocab;
  info_.hidden = c.hidden;
  info_.max_context = c.max_context;
  if (!c.engram.layers.empty()) engram_index_ = EngramIndex(c, std::move(token_map), map_, machine);
  embed_ = plan(Embedding{top_.embed.format, c.hidden, 1, type}, machine);
  start_ = plan(HcStart{c.n_streams, c.hidden, type}, machine);
  collapse_ = plan(HcCollapse{c.n_streams, c.hidden, type}, machine);
  mean_ = plan(HcMean{c.n_streams, c.hidden, type}, machine);
  if (boundary_ < c.n_layers) order_ = plan(order_of(c), machine);
  gather_ = plan(RowGather{false}, machine);
  scatter_ = plan(RowGather{true}, machine);
  norm_ = Norm(top_.norm, c.rms_eps, precision_, machine);
  head_ = Projection(top_.head, DType::f32, precision_, machine);
}

std::vector<int32_t> DeepseekV41::plan_rows(std::span<const SeqRows> seqs) const {
  std::vector<int32_t> count;
  if (!options_.trim_decoder || boundary_ >= config_.n_layers) return count;
  for (const SeqRows& seq : seqs)
    add_decoder_row_counts(order_of(config_), seq.first_pos, seq.n_rows, seq.end - (seq.n_logits - 1), count);
  return count;
}

void DeepseekV41::forward(const Step& step, kv::KvStore& store, View logits, Exec& exec) {
  forward(step, store, logits, View(), exec);
}

void DeepseekV41::forward(const Step& step, kv::KvStore& store, View logits, View taps, Exec& exec) {
  if (step.n_rows == 0) return;
  const Arena::Scope scope(exec.arena);
  StepContext s{step, store, exec, {nullptr, step.row_seq, step.row_pos, step.row_flags}};
  s.probe = probe_;
  s.selected = exec.arena.array<int32_t>(int64_t{step.n_rows} * config_.index_topk);
  s.n_selected = exec.arena.array<int32_t>(step.n_rows);
  s.candidates = exec.arena.array<int32_t>(int64_t{step.n_rows} * config_.candidate_blocks);
  s.n_candidates = exec.arena.array<int32_t>(step.n_rows);
  Streams x = start(s);
  run_layers(s, x, taps);
  if (step.n_logit_rows > 0) head(s, x, logits);
}

DeepseekV41::Streams DeepseekV41::start(StepContext& s) const {
  const int64_t T = s.step.n_rows, S = config_.n_streams, C = config_.hidden;
  const View x = s.tensor(precision_.activation(), {T, C});
  embed_({top_.embed, s.step.row_token, s.step.row_embed, s.step.embeds, x}, s.exec);  // [T, C]
  const Streams streams{s.tensor(x.dtype, {T, S, C}), s.tensor(DType::f32, {T, S}), {}};
  start_({x, streams.h, streams.pre}, s.exec);  // [T, S, C], [T, S]
  return streams;
}

// The rows that enter the decoder half, by falling last layer that needs them.
DeepseekV41::Streams DeepseekV41::compact(StepContext& s, const Streams& all) const {
  const Step& step = s.step;
  const int64_t T = step.n_rows, N = step.decoder_rows[0];
  int32_t* order = s.exec.arena.array<int32_t>(T);
  order_({step.row_pos, step.row_seq, step.seq_end, step.n_rows, step.decoder_rows, order}, s.exec);
  const std::span<const int32_t> kept(order, static_cast<size_t>(N));
  const auto pick = [&](const View& from, std::initializer_list<int64_t> shape) {
    const View to = s.tensor(from.dtype, shape);
    gather_({from, kept, to}, s.exec);
    return to;
  };
  const auto pick_ids = [&](const int32_t* from) {
    return pick(View(const_cast<int32_t*>(from), DType::i32, {T, 1}), {N, 1}).as<int32_t>();
  };
  const Streams some{pick(all.h, {N, all.h.dim(1), all.h.dim(2)}), pick(all.pre, {N, all.pre.dim(1)}),
                     s.tensor(DType::i32, {T, 1})};
  int32_t* place = s.exec.arena.array<int32_t>(T);
  for (int32_t i = 0; i < T; ++i) place[i] = i;
  scatter_({View(place, DType::i32, {T, 1}), std::span<const int32_t>(order, static_cast<size_t>(T)), some.place},
           s.exec);
  const int32_t* seq = pick_ids(step.row_seq);
  const int32_t* pos = pick_ids(step.row_pos);
  const View flags = pick(View(const_cast<uint8_t*>(step.row_flags), DType::u8, {T, 1}), {N, 1});
  s.rows = {order, seq, pos, flags.as<uint8_t>()};
  return some;
}

void DeepseekV41::tap(StepContext& s, int32_t layer, const View& h, const View& taps) const {
  if (taps.empty()) return;
  const std::vector<int32_t>& layers = config_.dspark.target_layers;
  const auto found = std::find(layers.begin(), layers.end(), layer);
  if (found == layers.end()) return;
  const int64_t C = config_.hidden;
  mean_({h, s.rows.index, s.rows.flags, row_wants_taps, taps.columns((found - layers.begin()) * C, C)}, s.exec);
}

void DeepseekV41::run_layers(StepContext& s, Streams& x, View taps) const {
  const std::span<const int32_t> plan = s.step.decoder_rows;
  GANNET_CHECK(plan.empty() || static_cast<int32_t>(plan.size()) == config_.n_layers - boundary_ + 1,
               "a plan of {} counts for {} decoder layers", plan.size(), config_.n_layers - boundary_);
  const bool trimmed = !plan.empty() && plan.back() < s.step.n_rows;
  std::vector<const int64_t*> engram_rows;
  if (!config_.engram.layers.empty()) engram_rows = engram_index_.rows(s);

  for (int32_t l = 0; l < config_.n_layers; ++l) {
    const Layer& layer = *layers_[static_cast<size_t>(l)];
    const bool decoder = trimmed && l >= boundary_;
    const auto at = static_cast<size_t>(std::max(0, l - boundary_));
    // Rows on hand, and rows that go through this layer: those on hand at the next.
    int32_t n_window = decoder && l > boundary_ ? plan[at] : s.step.n_rows;
    const int32_t n_run = decoder ? plan[at + 1] : s.step.n_rows;
    if (s.probe != nullptr) s.probe->before_layer(l, x.h.rows(0, n_window), x.pre.rows(0, n_window));
    const int32_t slot = config_.engram_slot(l);
    if (slot >= 0) layer.engram(s, x.h.rows(0, n_window), engram_rows[static_cast<size_t>(slot)]);
    if (config_.is_kv_source(l)) layer.write_compressed(s, x.h, x.pre);
    if (decoder && l == boundary_) {
      n_window = plan[0];
      if (n_window > 0) x = compact(s, x);
    }
    if (n_window == 0) return;
    tap(s, l, x.h.rows(0, n_window), taps);
    layer.forward(s, x.h.rows(0, n_window), x.pre.rows(0, n_window), n_run);
    if (s.probe != nullptr) s.probe->after_layer(l, x.h.rows(0, n_run), x.pre.rows(0, n_run));
  }
}

void DeepseekV41::head(StepContext& s, const Streams& x, View logits) const {
  const int64_t N = s.step.n_logit_rows, S = config_.n_streams, C = config_.hidden;
  std::span<const int32_t> rows(s.step.logit_rows, static_cast<size_t>(N));
  int64_t n_complete = s.step.n_rows;  // rows that went through every layer come first
  if (!x.place.empty()) {
    n_complete = s.step.decoder_rows.back();
    const View places = s.tensor(DType::i32, {N, 1});
    gather_({x.place, rows, places}, s.exec);
    rows = {places.as<int32_t>(), static_cast<size_t>(N)};
  }
  const View h = s.tensor(x.h.dtype, {N, S, C}), pre = s.tensor(DType::f32, {N, S}),
             y = s.tensor(x.h.dtype, {N, C});
  gather_({x.h.rows(0, n_complete), rows, h}, s.exec);      // [N, S, C]
  gather_({x.pre.rows(0, n_complete), rows, pre}, s.exec);  // [N, S]
  collapse_({h, pre, y}, s.exec);                           // [N, C]
  head_.into(s, norm_(s, y), logits);                       // f32 [N, V]
}

int64_t DeepseekV41::workspace_bytes(int32_t max_rows, int32_t max_logit_rows, int32_t max_pos) const {
  const Config& c = config_;
  const int n_threads = options_.n_threads > 0 ? options_.n_threads
                                               : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int64_t T = max_rows, C = c.hidden, S = c.n_streams, D = c.head_dim, heads = int64_t{c.n_heads} * D;
  const int64_t streams = 3 * T * (S * C * 4 + S * 4 + 64);
  const int64_t choice = T * 4 * (int64_t{c.index_topk} + c.candidate_blocks + 8);
  const int64_t engram = T * (8 * static_cast<int64_t>(c.engram.layers.size()) * c.engram.n_columns() + 16) +
                         T * 8 * (c.engram.input_dim() + (S + 1) * C);
  const int64_t attention = T * 8 *
                            (3 * heads + c.q_rank + 8 * D + c.index_heads * (int64_t{c.index_head_dim} + 4) +
                             2 * int64_t{c.index_head_dim} + int64_t{c.o_groups} * c.o_rank + 4 * C);
  const int64_t moe =
      T * 8 * (c.n_experts + 8 * C + 4 * int64_t{c.ffn} + c.n_experts_per_token * (4 * C + 4 * int64_t{c.ffn} + 8));
  const int64_t head = max_logit_rows * 4 * (S * C + 2 * C + 64);
  int64_t ops = 0;
  for (const auto& layer : layers_) ops = std::max(ops, layer->workspace_bytes(max_pos, n_threads));
  constexpr int64_t kLinearScratch = int64_t{64} << 20;  // products keep tiles per thread
  return streams + choice + engram + attention + moe + head + ops + kLinearScratch + n_threads * 64 * (S + 1) * C;
}

}  // namespace gannet::deepseek_v41
