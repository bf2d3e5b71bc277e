#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "support/model_files.h"
#include "tensor/dtype.h"

namespace gannet::weights {
namespace {

using test::fails_with;
using test::GgufWriter;
using test::SafetensorsWriter;
using test::TempDir;

std::string zeros(size_t n) { return std::string(n, '\0'); }

// A folder with this config and these tensors in one file.
Result<Checkpoint> folder(const TempDir& dir, std::string_view config, const SafetensorsWriter& writer) {
  dir.write("config.json", config);
  dir.write("model.safetensors", writer.bytes());
  return Checkpoint::open(dir.path());
}

constexpr std::string_view kV41 = R"({"model_type":"deepseek_v41"})";
constexpr std::string_view kLlama = R"({"model_type":"llama"})";

TEST(Checkpoint, RecognisesEveryStoredFormat) {
  TempDir dir;
  SafetensorsWriter w;
  w.add("f32.weight", "F32", {2, 32}, zeros(256));
  w.add("f16.weight", "F16", {2, 32}, zeros(128));
  w.add("bf16.weight", "BF16", {2, 32}, zeros(128));
  w.add("block.weight", "F8_E4M3", {40, 64}, zeros(2560));
  w.add("block.scale", "F8_E8M0", {2, 2}, std::string("\x7f\x80\x7f\x7f"));
  w.add("row.weight", "F8_E4M3", {40, 64}, zeros(2560));
  w.add("row.scale", "F8_E8M0", {40, 2}, zeros(80));
  w.add("pairs.weight", "I8", {3, 32}, zeros(96));
  w.add("pairs.scale", "F8_E8M0", {3, 2}, zeros(6));
  w.add("stack.weight", "BF16", {2, 3, 4}, zeros(48));
  const auto c = folder(dir, kV41, w);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->family(), "deepseek_v41");
  EXPECT_EQ(c->naming(), Naming::released_v41);
  EXPECT_EQ(c->matrix("f32.weight", 2, 32)->format, WeightFormat::f32);
  EXPECT_EQ(c->matrix("f16.weight", 2, 32)->format, WeightFormat::f16);
  EXPECT_EQ(c->matrix("bf16.weight", 2, 32)->format, WeightFormat::bf16);
  EXPECT_EQ(c->matrix("stack.weight", 6, 4)->out, 6);
  const auto block = c->matrix("block.weight", 40, 64);
  ASSERT_TRUE(block) << block.error().message;
  EXPECT_EQ(block->format, WeightFormat::fp8_32x32);
  EXPECT_EQ(block->scale_row_bytes, 2);
  EXPECT_EQ(block->bytes(), 2560 + 4);
  EXPECT_EQ(static_cast<int>(block->scales[1]), 0x80);
  EXPECT_EQ(c->matrix("row.weight", 40, 64)->format, WeightFormat::fp8_1x32);
  const auto pairs = c->matrix("pairs.weight", 3, 64);
  ASSERT_TRUE(pairs) << pairs.error().message;
  EXPECT_EQ(pairs->format, WeightFormat::mxfp4_1x32);
  EXPECT_EQ(pairs->row_bytes, 32);
}

TEST(Checkpoint, RefusesWhatDoesNotFit) {
  TempDir dir;
  SafetensorsWriter w;
  w.add("a.weight", "BF16", {2, 32}, zeros(128));
  w.add("int.weight", "I32", {2, 32}, zeros(256));
  w.add("lone.weight", "F8_E4M3", {32, 32}, zeros(1024));
  w.add("bad.weight", "F8_E4M3", {64, 32}, zeros(2048));
  w.add("bad.scale", "F8_E8M0", {3, 1}, zeros(3));
  w.add("typed.weight", "F8_E4M3", {32, 32}, zeros(1024));
  w.add("typed.scale", "F32", {1, 1}, zeros(4));
  w.add("narrow.weight", "F8_E4M3", {4, 48}, zeros(192));
  w.add("narrow.scale", "F8_E8M0", {1, 2}, zeros(2));
  w.add("pairs.weight", "I8", {3, 32}, zeros(96));
  w.add("pairs.scale", "F8_E8M0", {1, 2}, zeros(2));
  w.add("nan.weight", "F8_E4M3", {64, 32}, zeros(2048));
  w.add("nan.scale", "F8_E8M0", {2, 1}, std::string("\x7f\xff"));
  w.add("odd.weight", "F4", {4}, zeros(2));
  const auto c = folder(dir, kV41, w);
  ASSERT_TRUE(c) << c.error().message;
  const std::string path = dir.path().string();
  EXPECT_TRUE(fails_with(c->matrix("none.weight", 2, 32), {path, "none.weight"}));
  EXPECT_TRUE(fails_with(c->matrix("a.weight", 2, 33), {"a.weight", "BF16", "[2, 32]", "[2, 33]"}));
  EXPECT_TRUE(fails_with(c->matrix("a.weight", 32, 2), {"a.weight"}));
  EXPECT_TRUE(fails_with(c->matrix("a.weight", 0, 32), {"a.weight"}));
  EXPECT_TRUE(fails_with(c->matrix("int.weight", 2, 32), {"int.weight", "I32"}));
  EXPECT_TRUE(fails_with(c->matrix("odd.weight", 1, 4), {"odd.weight", "F4"}));
  EXPECT_TRUE(fails_with(c->matrix("lone.weight", 32, 32), {"lone.weight", "lone.scale"}));
  EXPECT_TRUE(fails_with(c->matrix("bad.weight", 64, 32), {"bad.scale", "[3, 1]", "[2, 1]", "[64, 1]"}));
  EXPECT_TRUE(fails_with(c->matrix("typed.weight", 32, 32), {"typed.scale", "F32"}));
  EXPECT_TRUE(fails_with(c->matrix("narrow.weight", 4, 48), {"narrow.weight", "48", "32"}));
  EXPECT_TRUE(fails_with(c->matrix("pairs.weight", 3, 64), {"pairs.scale", "[1, 2]", "[3, 2]"}));
  EXPECT_TRUE(fails_with(c->matrix("pairs.weight", 3, 32), {"pairs.weight", "two values a byte"}));
  EXPECT_TRUE(fails_with(c->matrix("nan.weight", 64, 32), {"nan.weight", "row 32"}));
}

TEST(Checkpoint, SmallTensorsAsFloats) {
  TempDir dir;
  SafetensorsWriter w;
  w.add("f32", "F32", {2}, test::raw(1.5f) + test::raw(-2.0f));
  w.add("bf16", "BF16", {2}, test::raw(to_bf16(0.5f)) + test::raw(to_bf16(3.0f)));
  w.add("f16", "F16", {1, 2}, test::raw(to_f16(0.25f)) + test::raw(to_f16(-1.0f)));
  w.add("nan", "F32", {2}, test::raw(1.0f) + test::raw(NAN));
  w.add("u8", "U8", {2}, "ab");
  const auto c = folder(dir, kLlama, w);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(*c->floats("f32", 2), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(*c->floats("bf16", 2), (std::vector<float>{0.5f, 3}));
  EXPECT_EQ(*c->floats("f16", 2), (std::vector<float>{0.25f, -1}));
  EXPECT_TRUE(fails_with(c->floats("nan", 2), {"'nan'", "nan at 1"}));
  EXPECT_TRUE(fails_with(c->floats("f32", 3), {"'f32'", "[2]", "3"}));
  EXPECT_TRUE(fails_with(c->floats("u8", 2), {"'u8'", "U8"}));
  const auto view = c->dense("f16", {1, 2});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->dim(1), 2);
  EXPECT_EQ(view->dtype, DType::f16);
  EXPECT_TRUE(fails_with(c->dense("f16", {2}), {"'f16'", "[1, 2]", "[2]"}));
  EXPECT_TRUE(fails_with(c->dense("u8", {2}), {"'u8'", "U8"}));

  // A payload at an odd address: floats() copies and works, a view would be misaligned.
  dir.write("model.safetensors", w.bytes(1));
  const auto odd = Checkpoint::open(dir.path());
  ASSERT_TRUE(odd) << odd.error().message;
  EXPECT_EQ(*odd->floats("f32", 2), (std::vector<float>{1.5f, -2}));
  EXPECT_TRUE(fails_with(odd->dense("f32", {2}), {"'f32'", "multiple"}));
}

TEST(Checkpoint, TransformersNamesOfV41) {
  TempDir dir;
  SafetensorsWriter w;
  w.add("model.embed_tokens.weight", "BF16", {1, 32}, zeros(64));
  w.add("model.layers.0.self_attn.q_a_proj.weight", "F8_E4M3", {32, 32}, zeros(1024));
  w.add("model.layers.0.self_attn.q_a_proj.weight_scale_inv", "F8_E8M0", {1, 1}, std::string("\x7f"));
  // Two experts: gate rows 0..1, up rows 2..3, then the next expert.
  std::string gate_up;
  for (int row = 0; row < 8; ++row) gate_up += test::raw(to_bf16(static_cast<float>(row))) + test::raw(to_bf16(0));
  w.add("model.layers.0.mlp.experts.gate_up_proj", "BF16", {2, 4, 2}, gate_up);
  w.add("model.layers.0.mlp.experts.down_proj", "BF16", {2, 2, 2}, zeros(16));
  const auto c = folder(dir, kV41, w);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->naming(), Naming::transformers_v41);
  EXPECT_TRUE(c->matrix("embed.weight", 1, 32));
  EXPECT_EQ(c->matrix("layers.0.attn.wq_a.weight", 32, 32)->format, WeightFormat::fp8_32x32);
  const auto first_of = [&](std::string_view name, int64_t row) {
    const auto view = c->matrix(name, 2, 2);
    EXPECT_TRUE(view) << (view ? "" : view.error().message);
    float out[2] = {-1, -1};
    if (view) dequantize(*view, row, 0, 2, out);
    return out[0];
  };
  EXPECT_EQ(first_of("layers.0.ffn.experts.0.w1.weight", 1), 1);
  EXPECT_EQ(first_of("layers.0.ffn.experts.0.w3.weight", 0), 2);
  EXPECT_EQ(first_of("layers.0.ffn.experts.1.w1.weight", 0), 4);
  EXPECT_EQ(first_of("layers.0.ffn.experts.1.w3.weight", 1), 7);
  EXPECT_TRUE(c->matrix("layers.0.ffn.experts.1.w2.weight", 2, 2));
  EXPECT_FALSE(c->has("layers.0.ffn.experts.2.w1.weight"));
}

TEST(Checkpoint, RefusesTwoNamesForOneWeight) {
  TempDir dir;
  SafetensorsWriter w;
  w.add("embed.weight", "BF16", {1, 1}, zeros(2));
  w.add("model.embed_tokens.weight", "BF16", {1, 1}, zeros(2));
  EXPECT_TRUE(fails_with(folder(dir, kV41, w), {"embed.weight", "the same"}));
  SafetensorsWriter flat;
  flat.add("model.layers.0.mlp.experts.down_proj", "BF16", {2, 2}, zeros(8));
  EXPECT_TRUE(fails_with(folder(dir, kV41, flat), {"down_proj", "[2, 2]", "stack"}));
}

TEST(Checkpoint, OpensGguf) {
  TempDir dir;
  GgufWriter w;
  w.string("general.architecture", "qwen3moe");
  w.tensor("token_embd.weight", {32, 2}, 8, std::string(68, 'a'));
  w.tensor("blk.3.attn_q.weight", {32, 1}, 2, zeros(18));
  w.tensor("blk.3.ffn_gate_exps.weight", {32, 4, 2}, 2, zeros(8 * 18));
  w.tensor("blk.3.ffn_norm.weight", {1}, 0, test::raw(1.0f));
  w.tensor("blk.3.iq.weight", {256}, 16, zeros(66));
  w.tensor("nan", {32, 2}, 2, zeros(18) + "\x01\x7e" + zeros(16));
  dir.write("m.gguf", w.bytes());
  const auto c = Checkpoint::open(dir / "m.gguf");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->family(), "qwen3_moe");
  EXPECT_EQ(c->container(), Container::gguf);
  EXPECT_EQ(c->config(), nullptr);
  EXPECT_EQ(c->matrix("model.embed_tokens.weight", 2, 32)->format, WeightFormat::q8_0);
  EXPECT_EQ(c->matrix("model.layers.3.self_attn.q_proj.weight", 1, 32)->format, WeightFormat::q4_0);
  const auto e0 = c->matrix("model.layers.3.mlp.experts.0.gate_proj.weight", 4, 32),
             e1 = c->matrix("model.layers.3.mlp.experts.1.gate_proj.weight", 4, 32);
  ASSERT_TRUE(e0 && e1);
  EXPECT_EQ(e1->codes - e0->codes, 4 * 18);
  EXPECT_TRUE(c->floats("model.layers.3.post_attention_layernorm.weight", 1));
  EXPECT_TRUE(fails_with(c->matrix("nan", 2, 32), {"'nan'", "row 1"}));
  EXPECT_TRUE(fails_with(c->matrix("blk.3.iq.weight", 1, 256), {"IQ2_XXS"}));
}

TEST(Checkpoint, NamesWhatIsMissing) {
  TempDir dir;
  EXPECT_TRUE(fails_with(Checkpoint::open(dir / "nothing"), {"nothing"}));
  EXPECT_TRUE(fails_with(Checkpoint::open(dir.path()), {"config.json"}));
  dir.write("config.json", "{}");
  EXPECT_TRUE(fails_with(Checkpoint::open(dir.path()), {"config.json", "model_type"}));
  dir.write("config.json", "[1,");
  EXPECT_TRUE(fails_with(Checkpoint::open(dir.path()), {"config.json", "JSON"}));
  dir.write("config.json", kLlama);
  EXPECT_TRUE(fails_with(Checkpoint::open(dir.path()), {"no .safetensors file"}));
  dir.write("bad.gguf", "GGUF");
  EXPECT_TRUE(fails_with(Checkpoint::open(dir / "bad.gguf"), {"bad.gguf"}));
}

}  // namespace
}  // namespace gannet::weights
