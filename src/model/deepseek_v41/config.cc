#include "model/deepseek_v41/config.h"

#include <fmt/format.h>

#include <utility>

#include "files/config_reader.h"
#include "model/deepseek_v41/config_rules.h"

namespace gannet::deepseek_v41 {
namespace {

using files::ConfigReader;

// Bounds that keep every product of two dimensions inside int32 or obviously impossible; far beyond any real model.
constexpr int64_t kMaxDim = 1 << 20;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxToken = (1 << 24) - 1;

class Parser {
 public:
  Parser(const Json& root, const Json& text, std::string_view name)
      : root_(root, name), text_(text, name), name_(name) {}

  Result<Config> run() {
    GANNET_TRY(family());
    GANNET_TRY(shape());
    GANNET_TRY(fixed_choices());
    GANNET_TRY(rope());
    GANNET_TRY(experts());
    GANNET_TRY(streams());
    GANNET_TRY(compression());
    GANNET_TRY(engram());
    GANNET_TRY(dspark());
    GANNET_TRY(quantisation());
    GANNET_TRY(vision());
    GANNET_TRY(tokens());
    GANNET_TRY(check_rules(c_, name_));
    return std::move(c_);
  }

 private:
  Status family() {
    for (const ConfigReader* reader : {&root_, &text_}) {
      GANNET_ASSIGN(const std::string type, reader->text({"model_type"}, "deepseek_v41"));
      if (type != "deepseek_v41" && type != "deepseek_v41_text")
        return reader->unsupported("model_type", "is not DeepSeek-V4.1");
    }
    return ok();
  }

  Status shape() {
    GANNET_TRY(text_.read(c_.vocab, {"vocab_size"}, 129280, 1, kMaxToken + 1));
    GANNET_TRY(text_.read(c_.hidden, {"hidden_size", "dim"}, 5120, 1, kMaxDim));
    GANNET_TRY(text_.read(c_.n_layers, {"num_hidden_layers", "n_layers"}, 40, 1, kMaxLayers));
    GANNET_TRY(text_.read(c_.n_heads, {"num_attention_heads", "n_heads"}, 64, 1, 4096));
    GANNET_TRY(text_.read(c_.head_dim, {"head_dim"}, 512, 1, 8192));
    GANNET_TRY(text_.read(c_.rope_dim, {"qk_rope_head_dim", "rope_head_dim"}, 64, 2, 8192));
    GANNET_TRY(text_.read(c_.q_rank, {"q_lora_rank"}, 1280, 1, kMaxDim));
    GANNET_TRY(text_.read(c_.o_groups, {"o_groups"}, 8, 1, 4096));
    GANNET_TRY(text_.read(c_.o_rank, {"o_lora_rank"}, 1024, 1, kMaxDim));
    GANNET_TRY(text_.read(c_.window, {"sliding_window", "window_size"}, 128, 1, kMaxDim));
    GANNET_TRY(
        text_.read(c_.max_context, {"max_position_embeddings", "max_seq_len"}, 1048576, 1, int64_t{1} << 30));
    GANNET_ASSIGN(c_.rms_eps, text_.number({"rms_norm_eps", "norm_eps"}, 1e-20, 0, 1));
    return ok();
  }

  // Fields that have one legal value here.
  Status fixed_choices() {
    GANNET_ASSIGN(const int64_t kv_heads, text_.integer({"num_key_value_heads"}, 1, INT64_MIN, INT64_MAX));
    if (kv_heads != 1)
      return text_.unsupported("num_key_value_heads", "is not supported (all heads share one vector: 1)");
    GANNET_ASSIGN(const std::string topk, text_.text({"topk_method"}, "noaux_tc"));
    if (topk != "noaux_tc") return text_.unsupported("topk_method", "is not supported (noaux_tc is)");
    GANNET_ASSIGN(const std::string act, text_.text({"hidden_act"}, "silu"));
    if (act != "silu") return text_.unsupported("hidden_act", "is not supported (silu is)");
    for (const std::string_view field : {"attention_bias", "mlp_bias", "tie_word_embeddings"}) {
      GANNET_ASSIGN(const bool on, text_.boolean({field}, false));
      if (on) return text_.unsupported(field, "is not supported (false is)");
    }
    for (const std::string_view field : {"num_hash_layers", "first_k_dense_replace"}) {
      GANNET_ASSIGN(const int64_t n, text_.integer({field}, 0, INT64_MIN, INT64_MAX));
      if (n != 0) return text_.unsupported(field, "is not supported (0 is)");
    }
    for (const std::string_view field : {"n_group", "topk_group", "n_shared_experts", "moe_layer_freq"}) {
      GANNET_ASSIGN(const int64_t n, text_.integer({field}, 1, INT64_MIN, INT64_MAX));
      if (n != 1) return text_.unsupported(field, "is not supported (1 is)");
    }
    return ok();
  }

  Status rope() {
    GANNET_ASSIGN(c_.rope_theta, text_.number({"rope_theta"}, 10000, 1, 1e12));
    GANNET_ASSIGN(c_.compress_rope_theta, text_.number({"compress_rope_theta"}, 160000, 1, 1e12));
    const Json* parameters = text_.find({"rope_parameters"});
    if (parameters != nullptr && (parameters->find("main") != nullptr || parameters->find("compress") != nullptr))
      return rope_parameters(*parameters);
    if (const Json* scaling = text_.find({"rope_scaling", "rope_parameters"})) return yarn(*scaling);
    if (text_.has({"rope_factor"})) {  // the reference implementation's flat spelling
      GANNET_ASSIGN(const int64_t original, text_.integer({"original_seq_len"}, 0, 0, int64_t{1} << 40));
      if (original > 0) return yarn_fields(text_);
    }
    return ok();
  }

  // {"main": {rope_type, rope_theta}, "compress": {rope_type, rope_theta, factor, ...}}
  Status rope_parameters(const Json& parameters) {
    if (const Json* main = parameters.find("main"); main != nullptr && main->is_object()) {
      const ConfigReader reader(*main, fmt::format("{}: rope_parameters.main", name_));
      GANNET_ASSIGN(c_.rope_theta, reader.number({"rope_theta"}, c_.rope_theta, 1, 1e12));
      GANNET_ASSIGN(const std::string type, reader.text({"rope_type", "type"}, "default"));
      if (type != "default") return reader.unsupported("rope_type", "is not supported (default is)");
    }
    if (const Json* compress = parameters.find("compress"); compress != nullptr && compress->is_object()) {
      const ConfigReader reader(*compress, fmt::format("{}: rope_parameters.compress", name_));
      GANNET_ASSIGN(c_.compress_rope_theta, reader.number({"rope_theta"}, c_.compress_rope_theta, 1, 1e12));
      return yarn(*compress);
    }
    return ok();
  }

  Status yarn(const Json& scaling) {
    if (!scaling.is_object()) return text_.broken("rope_scaling", "is no object");
    const ConfigReader reader(scaling, fmt::format("{}: rope_scaling", name_));
    GANNET_ASSIGN(const std::string type, reader.text({"rope_type", "type"}, "default"));
    if (type == "default") return ok();
    if (type != "yarn")
      return reader.unsupported(reader.has({"rope_type"}) ? "rope_type" : "type",
                                "is not supported (yarn and default are)");
    // The model has no attention factor: what would bring one in is refused.
    GANNET_ASSIGN(const double attention, reader.number({"attention_factor"}, 1, -1e9, 1e9));
    if (attention != 1) return reader.unsupported("attention_factor", "is not supported (1 is)");
    GANNET_ASSIGN(const double mscale, reader.number({"mscale"}, 1, -1e9, 1e9));
    GANNET_ASSIGN(const double mscale_all, reader.number({"mscale_all_dim"}, mscale, -1e9, 1e9));
    if (mscale != mscale_all)
      return reader.unsupported("mscale", "is not supported unless it equals mscale_all_dim");
    GANNET_ASSIGN(const bool truncate, reader.boolean({"truncate"}, true));
    if (!truncate) return reader.unsupported("truncate", "is not supported (true is)");
    return yarn_fields(reader);
  }

  Status yarn_fields(const ConfigReader& reader) {
    c_.yarn.on = true;
    GANNET_ASSIGN(c_.yarn.factor, reader.number({"factor", "rope_factor"}, std::nullopt, 1, 1e6));
    GANNET_ASSIGN(c_.yarn.beta_fast, reader.number({"beta_fast"}, 32, 1e-3, 1e6));
    GANNET_ASSIGN(c_.yarn.beta_slow, reader.number({"beta_slow"}, 1, 1e-3, 1e6));
    GANNET_ASSIGN(c_.yarn.original_context, reader.integer({"original_max_position_embeddings", "original_seq_len"},
                                                           65536, 1, int64_t{1} << 40));
    return ok();
  }

  Status experts() {
    GANNET_TRY(text_.read(c_.ffn, {"moe_intermediate_size", "moe_inter_dim"}, 2304, 1, kMaxDim));
    GANNET_TRY(text_.read(c_.n_experts, {"n_routed_experts", "num_local_experts"}, 384, 1, 65536));
    GANNET_TRY(text_.read(c_.n_experts_per_token, {"num_experts_per_tok", "n_activated_experts"}, 6, 1, 1024));
    GANNET_ASSIGN(const std::string score, text_.text({"scoring_func", "score_func"}, "sqrtsoftplus"));
    if (score == "sqrtsoftplus")
      c_.score = ScoreFunction::sqrt_softplus;
    else if (score == "softmax")
      c_.score = ScoreFunction::softmax;
    else if (score == "sigmoid")
      c_.score = ScoreFunction::sigmoid;
    else
      return text_.unsupported(text_.has({"scoring_func"}) ? "scoring_func" : "score_func",
                               "is not supported (sqrtsoftplus, softmax, sigmoid are)");
    GANNET_ASSIGN(c_.norm_topk_prob, text_.boolean({"norm_topk_prob"}, true));
    GANNET_ASSIGN(c_.routed_scaling, text_.number({"routed_scaling_factor", "route_scale"}, 1.5, -1e6, 1e6));
    GANNET_ASSIGN(c_.gate_temp, text_.number({"gate_temp"}, 1, 1e-6, 1e6));
    GANNET_ASSIGN(c_.swiglu_limit, text_.number({"swiglu_limit"}, 10, -1e30, 1e30));
    return ok();
  }

  Status streams() {
    GANNET_TRY(text_.read(c_.n_streams, {"hc_mult"}, 4, 1, 8));
    GANNET_TRY(text_.read(c_.sinkhorn_iters, {"hc_sinkhorn_iters"}, 20, 1, 10000));
    GANNET_ASSIGN(c_.hc_eps, text_.number({"hc_eps"}, 1e-6, 0, 1));
    return ok();
  }

  Status compression() {
    GANNET_TRY(text_.read(c_.index_heads, {"index_n_heads"}, 32, 1, 4096));
    GANNET_TRY(text_.read(c_.index_head_dim, {"index_head_dim"}, 128, 1, 8192));
    GANNET_TRY(text_.read(c_.index_topk, {"index_topk"}, 512, 1, kMaxDim));
    GANNET_TRY(text_.read(c_.candidate_blocks, {"candidate_topk_blocks"}, 2048, 1, kMaxDim));
    GANNET_TRY(text_.read(c_.candidate_block_size, {"candidate_block_size"}, 8, 1, 4096));
    GANNET_TRY(text_.read(c_.dspark.n_stages, {"num_nextn_predict_layers", "n_mtp_layers"}, 0, 0, 64));
    GANNET_ASSIGN(const auto ratios, text_.integers({"compress_ratios"}, 0, 1 << 20));
    if (ratios)
      c_.ratios.assign(ratios->begin(), ratios->end());
    else
      c_.ratios = default_ratios(c_.n_layers);
    const auto n = static_cast<int64_t>(c_.ratios.size());
    if (n < c_.n_layers || n > c_.n_layers + c_.dspark.n_stages)
      return Error{
          Errc::bad_file,
          fmt::format(
              "{}: compress_ratios has {} entries for num_hidden_layers = {} and num_nextn_predict_layers = {}",
              name_, n, c_.n_layers, c_.dspark.n_stages)};
    c_.ratios.resize(static_cast<size_t>(c_.n_layers + c_.dspark.n_stages), 0);
    GANNET_ASSIGN(const auto kv, text_.integers({"kv_source_layer_ids", "kv_source_layers"}, 0, c_.n_layers - 1));
    if (kv)
      c_.kv_sources.assign(kv->begin(), kv->end());
    else
      c_.kv_sources = default_kv_sources(c_);
    GANNET_ASSIGN(const auto index,
                  text_.integers({"index_source_layer_ids", "index_source_layers"}, 0, c_.n_layers - 1));
    if (index)
      c_.index_sources.assign(index->begin(), index->end());
    else
      c_.index_sources = default_index_sources(c_);
    const int64_t last = c_.kv_sources.empty() ? -1 : c_.kv_sources.back();
    GANNET_TRY(text_.read(c_.candidate_source, {"candidate_source_layer_id", "candidate_source_layer"}, last,
                          -1000000, c_.n_layers - 1));
    if (c_.candidate_source < 0) c_.candidate_source = -1;
    return ok();
  }

  Status engram() {
    EngramConfig& e = c_.engram;
    GANNET_ASSIGN(const auto layers, text_.integers({"engram_layer_ids"}, 0, c_.n_layers - 1));
    if (layers) e.layers.assign(layers->begin(), layers->end());
    GANNET_ASSIGN(e.vocab_size, text_.integer({"engram_vocab_size"}, 16000000, 2, int64_t{1} << 31));
    GANNET_TRY(text_.read(e.max_ngram, {"engram_max_ngram_size"}, 4, 2, 16));
    GANNET_TRY(text_.read(e.n_heads, {"engram_n_heads"}, 8, 1, 256));
    GANNET_TRY(text_.read(e.head_dim, {"engram_head_dim"}, 256, 1, 8192));
    GANNET_TRY(text_.read(e.pad_token, {"engram_pad_token_id", "engram_pad_id"}, 2, 0, kMaxToken));
    GANNET_TRY(text_.read(e.compressed_vocab, {"engram_compressed_vocab_size"}, 99092, 1, kMaxToken));
    GANNET_ASSIGN(const auto rows, text_.integers({"engram_num_embeddings"}, 1, int64_t{1} << 40));
    if (static_cast<int64_t>(e.layers.size()) * e.n_columns() > kMaxEngramPrimes)
      return Error{
          Errc::unsupported,
          fmt::format("{}: engram_layer_ids, engram_max_ngram_size and engram_n_heads ask for more than {} tables",
                      name_, kMaxEngramPrimes)};
    if (rows)
      e.table_rows = *rows;
    else
      e.table_rows = engram_table_rows(e);
    return ok();
  }

  Status dspark() {
    DsparkConfig& d = c_.dspark;
    GANNET_TRY(text_.read(d.block, {"dspark_block_size"}, 5, 1, 64));
    GANNET_TRY(text_.read(d.noise_token, {"dspark_noise_token_id"}, 128799, 0, kMaxToken));
    GANNET_TRY(text_.read(d.markov_rank, {"dspark_markov_rank"}, 256, 1, kMaxDim));
    GANNET_TRY(text_.read(d.n_experts, {"dspark_n_routed_experts"}, 128, 1, 65536));
    GANNET_TRY(text_.read(d.n_experts_per_token, {"dspark_num_experts_per_tok", "dspark_n_activated_experts"}, 3, 1,
                          1024));
    GANNET_ASSIGN(const auto targets, text_.integers({"dspark_target_layer_ids"}, 0, c_.n_layers - 1));
    if (targets) {
      d.target_layers.assign(targets->begin(), targets->end());
    } else if (d.n_stages > 0) {  // the last three layers that are no kv source
      for (int32_t l = c_.n_layers - 1; l >= 0 && d.target_layers.size() < 3; --l)
        if (!c_.is_kv_source(l)) d.target_layers.insert(d.target_layers.begin(), l);
    }
    return ok();
  }

  Status quantisation() {
    const Json* quant = root_.find({"quantization_config"});
    if (quant == nullptr) quant = text_.find({"quantization_config"});
    if (quant == nullptr) return ok();
    if (!quant->is_object()) return root_.broken("quantization_config", "is no object");
    const ConfigReader q(*quant, fmt::format("{}: quantization_config", name_));
    GANNET_ASSIGN(const std::string method, q.text({"quant_method"}, "fp8"));
    if (method != "fp8") return q.unsupported("quant_method", "is not supported (fp8 is)");
    GANNET_ASSIGN(const std::string activation, q.text({"activation_scheme"}, "dynamic"));
    if (activation != "dynamic") return q.unsupported("activation_scheme", "is not supported (dynamic is)");
    GANNET_ASSIGN(const std::string scale, q.text({"scale_fmt"}, "ue8m0"));
    if (scale != "ue8m0") return q.unsupported("scale_fmt", "is not supported (ue8m0 is)");
    GANNET_ASSIGN(const auto block, q.integers({"weight_block_size"}, 1, 1 << 20));
    if (block && *block != std::vector<int64_t>{32, 32})
      return q.unsupported("weight_block_size", "is not supported ([32, 32] is)");
    c_.quant.fp8 = true;
    for (const ConfigReader* reader : {&q, &text_, &root_}) {
      if (!reader->has({"expert_dtype"})) continue;
      GANNET_ASSIGN(const std::string experts, reader->text({"expert_dtype"}, "fp4"));
      if (experts != "fp4" && experts != "fp8")
        return reader->unsupported("expert_dtype", "is not supported (fp4 and fp8 are)");
      c_.quant.fp4_experts = experts == "fp4";
      return ok();
    }
    c_.quant.fp4_experts = true;
    return ok();
  }

  Status vision() {
    const Json* json = root_.find({"vision_config"});
    const bool flat = json == nullptr && text_.has({"vision_dim", "vision_n_layers"});
    if (json == nullptr && !flat) return ok();
    const ConfigReader v = flat ? text_ : ConfigReader(*json, fmt::format("{}: vision_config", name_));
    if (json != nullptr && !json->is_object()) return root_.broken("vision_config", "is no object");
    VisionConfig out;
    // In the flat form the plain names belong to the text model.
    const auto read = [&](int32_t& field, std::string_view nested, std::string_view alias, int64_t high) {
      return flat ? v.read(field, {alias}, field, 1, high) : v.read(field, {nested, alias}, field, 1, high);
    };
    GANNET_TRY(read(out.hidden, "hidden_size", "vision_dim", kMaxDim));
    GANNET_TRY(read(out.n_layers, "num_hidden_layers", "vision_n_layers", kMaxLayers));
    GANNET_TRY(read(out.n_heads, "num_attention_heads", "vision_n_heads", 4096));
    GANNET_TRY(read(out.ffn, "intermediate_size", "vision_inter_dim", kMaxDim));
    GANNET_TRY(read(out.patch, "patch_size", "vision_patch_size", 1024));
    GANNET_TRY(read(out.merge, "downsample_ratio", "vision_downsample_ratio", 64));
    GANNET_TRY(read(out.max_image_tokens, "max_image_tokens", "vision_max_n_token", 1 << 20));
    GANNET_ASSIGN(out.rope_theta, flat ? v.number({"vision_rope_theta"}, 10000, 1, 1e12)
                                       : v.number({"rope_theta", "vision_rope_theta"}, 10000, 1, 1e12));
    GANNET_ASSIGN(out.min_pixels,
                  flat ? v.integer({"vision_min_pixels"}, 295936, 0, int64_t{1} << 40)
                       : v.integer({"min_pixels", "vision_min_pixels"}, 295936, 0, int64_t{1} << 40));
    const auto max_ratio = [&](files::Names names) -> Status {
      if (!v.has(names)) return ok();
      GANNET_ASSIGN(out.max_wh_ratio, v.number(names, 1, 1, 1e6));
      return ok();
    };
    GANNET_TRY(flat ? max_ratio({"vision_max_wh_ratio"}) : max_ratio({"max_wh_ratio", "vision_max_wh_ratio"}));
    c_.vision = out;
    return ok();
  }

  // Token ids live at the top level of the released file, and beside the rest in a flat one.
  Status tokens() {
    const auto token = [&](int32_t& out, std::string_view field) {
      const ConfigReader& reader = root_.has({field}) ? root_ : text_;
      return reader.read(out, {field}, out, 0, kMaxToken);
    };
    GANNET_TRY(token(c_.bos_id, "bos_token_id"));
    GANNET_TRY(token(c_.eos_id, "eos_token_id"));
    GANNET_TRY(token(c_.pad_id, "pad_token_id"));
    return token(c_.image_token_id, "image_token_id");
  }

  const ConfigReader root_, text_;
  std::string_view name_;
  Config c_;
};

}  // namespace

Result<Config> config_from_json(const Json& json, std::string_view name) {
  if (!json.is_object()) return Error{Errc::bad_file, fmt::format("{} is no JSON object", name)};
  const Json* text = json.find("text_config");
  if (text != nullptr && !text->is_null() && !text->is_object())
    return Error{Errc::bad_file, fmt::format("{}: text_config is no object", name)};
  return Parser(json, text != nullptr && text->is_object() ? *text : json, name).run();
}

}  // namespace gannet::deepseek_v41
