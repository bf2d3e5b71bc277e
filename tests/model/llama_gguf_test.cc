// One model from either kind of file: the tiny goldens written as GGUF, with that format's names, permuted rows,
// stacked experts and shifted norms, must compute what their safetensors do.
#include <cmath>
#include <cstring>

#include "files/safetensors.h"
#include "model/llama/model.h"
#include "model/llama_runner.h"
#include "support/model_files.h"

namespace gannet::llama {
namespace {

using test::LlamaRunner;
using test::Piece;

// Rows of q and k that lie as (half, pair) for each head become (pair, half): then pairs are neighbours.
std::vector<float> interleave_heads(const std::vector<float>& w, int32_t heads, int32_t head_dim, int32_t in) {
  std::vector<float> out(w.size());
  const int32_t half = head_dim / 2;
  for (int32_t h = 0; h < heads; ++h)
    for (int32_t i = 0; i < half; ++i)
      for (int32_t part = 0; part < 2; ++part)
        std::memcpy(out.data() + int64_t{h * head_dim + 2 * i + part} * in,
                    w.data() + int64_t{h * head_dim + part * half + i} * in, static_cast<size_t>(in) * 4);
  return out;
}

class GgufForm {
 public:
  GgufForm(const weights::Checkpoint& source, const Config& config, std::string architecture)
      : source_(source), c_(config), arch_(std::move(architecture)) {}

  std::string bytes() {
    metadata();
    tensor("token_embd.weight", "model.embed_tokens.weight", c_.vocab, c_.hidden);
    tensor("output_norm.weight", "model.norm.weight", 1, c_.hidden);
    if (!c_.tied_embeddings) tensor("output.weight", "lm_head.weight", c_.vocab, c_.hidden);
    for (int32_t l = 0; l < c_.n_layers; ++l) layer(l);
    return file_.bytes();
  }

 private:
  void number(const std::string& key, int32_t value) { file_.u32(arch_ + "." + key, static_cast<uint32_t>(value)); }
  void metadata() {
    file_.string("general.architecture", arch_);
    number("block_count", c_.n_layers);
    number("embedding_length", c_.hidden);
    number("attention.head_count", c_.n_heads);
    number("attention.head_count_kv", c_.n_kv_heads);
    number("attention.key_length", c_.head_dim);
    number("attention.value_length", c_.head_dim);
    number("feed_forward_length", c_.ffn);
    number("context_length", c_.max_context);
    number("vocab_size", c_.vocab);
    file_.f32(arch_ + ".attention.layer_norm_rms_epsilon", static_cast<float>(c_.rms_eps));
    file_.f32(arch_ + ".rope.freq_base", static_cast<float>(c_.rope.theta));
    if (c_.sliding_window > 0) number("attention.sliding_window", c_.sliding_window);
    if (c_.n_experts == 0) return;
    number("expert_count", c_.n_experts);
    number("expert_used_count", c_.n_experts_per_token);
    number("expert_feed_forward_length", c_.expert_ffn);
  }

  std::vector<float> values(const std::string& name, int64_t out, int64_t in) const {
    if (out == 1) {
      std::vector<float> norm = *source_.floats(name, in);
      if (c_.norm_plus_one && name.ends_with("norm.weight"))
        for (float& w : norm) w += 1.0f;
      return norm;
    }
    const WeightView w = *source_.matrix(name, out, in);
    std::vector<float> all(static_cast<size_t>(out * in));
    for (int64_t o = 0; o < out; ++o) dequantize(w, o, 0, in, all.data() + o * in);
    return all;
  }
  void write(const std::string& name, const std::vector<float>& data, std::vector<uint64_t> dims) {
    file_.tensor(name, dims, 0, {reinterpret_cast<const char*>(data.data()), data.size() * 4});
  }
  void tensor(const std::string& name, const std::string& from, int64_t out, int64_t in) {
    const auto rows = static_cast<uint64_t>(out), columns = static_cast<uint64_t>(in);
    write(name, values(from, out, in),
          out == 1 ? std::vector<uint64_t>{columns} : std::vector<uint64_t>{columns, rows});
  }

  void layer(int32_t l) {
    const std::string from = "model.layers." + std::to_string(l) + ".", to = "blk." + std::to_string(l) + ".";
    const int32_t C = c_.hidden, q = c_.n_heads * c_.head_dim, kv = c_.n_kv_heads * c_.head_dim;
    tensor(to + "attn_norm.weight", from + "input_layernorm.weight", 1, C);
    if (c_.post_norms) {
      tensor(to + "post_attention_norm.weight", from + "post_attention_layernorm.weight", 1, C);
      tensor(to + "ffn_norm.weight", from + "pre_feedforward_layernorm.weight", 1, C);
      tensor(to + "post_ffw_norm.weight", from + "post_feedforward_layernorm.weight", 1, C);
    } else {
      tensor(to + "ffn_norm.weight", from + "post_attention_layernorm.weight", 1, C);
    }
    attention(from + "self_attn.", to, q, kv);
    if (!c_.is_moe.empty()) return experts(from + "mlp.", to);
    tensor(to + "ffn_gate.weight", from + "mlp.gate_proj.weight", c_.ffn, C);
    tensor(to + "ffn_up.weight", from + "mlp.up_proj.weight", c_.ffn, C);
    tensor(to + "ffn_down.weight", from + "mlp.down_proj.weight", C, c_.ffn);
  }
  void attention(const std::string& from, const std::string& to, int32_t q, int32_t kv) {
    const int32_t C = c_.hidden;
    if (c_.family == Family::llama) {
      const auto in = static_cast<uint64_t>(C);
      write(to + "attn_q.weight",
            interleave_heads(values(from + "q_proj.weight", q, C), c_.n_heads, c_.head_dim, C),
            {in, static_cast<uint64_t>(q)});
      write(to + "attn_k.weight",
            interleave_heads(values(from + "k_proj.weight", kv, C), c_.n_kv_heads, c_.head_dim, C),
            {in, static_cast<uint64_t>(kv)});
    } else {
      tensor(to + "attn_q.weight", from + "q_proj.weight", q, C);
      tensor(to + "attn_k.weight", from + "k_proj.weight", kv, C);
    }
    tensor(to + "attn_v.weight", from + "v_proj.weight", kv, C);
    tensor(to + "attn_output.weight", from + "o_proj.weight", C, q);
    if (c_.qkv_bias) {
      tensor(to + "attn_q.bias", from + "q_proj.bias", 1, q);
      tensor(to + "attn_k.bias", from + "k_proj.bias", 1, kv);
      tensor(to + "attn_v.bias", from + "v_proj.bias", 1, kv);
    }
    if (c_.qk_norm) {
      tensor(to + "attn_q_norm.weight", from + "q_norm.weight", 1, c_.head_dim);
      tensor(to + "attn_k_norm.weight", from + "k_norm.weight", 1, c_.head_dim);
    }
  }
  void experts(const std::string& from, const std::string& to) {
    tensor(to + "ffn_gate_inp.weight", from + "gate.weight", c_.n_experts, c_.hidden);
    for (const std::string part : {"gate", "up", "down"}) {
      const bool down = part == "down";
      const int32_t out = down ? c_.hidden : c_.expert_ffn, in = down ? c_.expert_ffn : c_.hidden;
      std::vector<float> stack;
      for (int32_t e = 0; e < c_.n_experts; ++e) {
        const auto one = values(from + "experts." + std::to_string(e) + "." + part + "_proj.weight", out, in);
        stack.insert(stack.end(), one.begin(), one.end());
      }
      write(to + "ffn_" + part + "_exps.weight", stack,
            {static_cast<uint64_t>(in), static_cast<uint64_t>(out), static_cast<uint64_t>(c_.n_experts)});
    }
  }

  const weights::Checkpoint& source_;
  const Config& c_;
  std::string arch_;
  test::GgufWriter file_;
};

class LlamaGguf : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LlamaGguf, SameModelFromEitherFile) {
  const auto& [name, architecture] = GetParam();
  const auto source = *weights::Checkpoint::open(std::string(GANNET_SOURCE_DIR) + "/tests/golden/llama/" + name +
                                                 "/model.safetensors");
  Config config = *config_of(source);
  if (config.n_experts > 0) {  // in GGUF every layer of this family has experts; here only the first has
    config.n_layers = 1;
    config.is_moe = {true};
  }
  test::TempDir folder;
  folder.write("model.gguf", GgufForm(source, config, architecture).bytes());
  const auto checkpoint = weights::Checkpoint::open(folder / "model.gguf");
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  const Result<Config> from_gguf = config_of(*checkpoint);
  ASSERT_TRUE(from_gguf.has_value()) << from_gguf.error().message;
  if (config.family == Family::gemma3) {  // what the format fixes
    config.is_local = from_gguf->is_local;
    config.query_scale = from_gguf->query_scale;
    config.rope_local = from_gguf->rope_local;
  }

  const auto a = *create(source, config, Numerics::float32, this_machine());
  const auto b = create(*checkpoint, *from_gguf, Numerics::float32, this_machine());
  ASSERT_TRUE(b.has_value()) << b.error().message;
  EXPECT_EQ((*b)->info().family, a->info().family);
  EXPECT_EQ((*b)->info().parameters, a->info().parameters);
  std::vector<int32_t> ids(70);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(3 + i * 37 % 150);
  LlamaRunner first(*a, 1, 128, 1, 1), second(**b, 1, 128, 1, 2);
  const Piece piece{0, 0, ids};
  const std::vector<float> want = first.run(std::span(&piece, 1)), got = second.run(std::span(&piece, 1));
  ASSERT_EQ(got.size(), want.size());
  // The same fp32 weights give the same bits; permuted rows change the order of q . k, and 1 + w is rounded once
  // more.
  const bool same_order = config.family != Family::llama && config.family != Family::gemma3;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_LE(std::abs(got[i] - want[i]), same_order ? 0.0f : 2e-5f) << i;
}

INSTANTIATE_TEST_SUITE_P(Families, LlamaGguf,
                         testing::Values(std::pair("llama2", "llama"), std::pair("qwen2", "qwen2"),
                                         std::pair("qwen3", "qwen3"), std::pair("qwen3_moe", "qwen3moe"),
                                         std::pair("gemma3", "gemma3")),
                         [](const auto& param) { return std::string(param.param.first); });

}  // namespace
}  // namespace gannet::llama
