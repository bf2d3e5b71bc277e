#include "cli/inspect.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

#include "base/mapped_file.h"
#include "support/model_files.h"

namespace gannet::cli {
namespace {

using test::fails_with;
using test::TempDir;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kTimeFactor = 10;
#else
constexpr double kTimeFactor = 1;
#endif

bool make_stand_in(const TempDir& dir, std::string_view flags) {
  const std::string command = "python3 " GANNET_SOURCE_DIR "/tests/support/make_stand_in.py " +
                              dir.path().string() + " " + std::string(flags) + " > /dev/null";
  return std::system(command.c_str()) == 0;
}

Result<ModelSummary> summary_of(const std::filesystem::path& path, bool check_scales = false) {
  InspectOptions options;
  options.path = path.string();
  options.check_scales = check_scales;
  GANNET_ASSIGN(const auto checkpoint, weights::Checkpoint::open(path));
  return summarise(options, checkpoint);
}

// Replaces text of equal length in a file.
void edit(const std::filesystem::path& path, std::string_view from, std::string_view to) {
  ASSERT_EQ(from.size(), to.size());
  std::string text = *read_file(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Inspect, AValidModel) {
  TempDir dir;
  ASSERT_TRUE(make_stand_in(dir, "--tiny"));
  const auto s = summary_of(dir.path(), true);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_TRUE(s->validation.ok()) << s->validation.problems.front();
  EXPECT_EQ(s->family, "deepseek_v41");
  EXPECT_EQ(s->naming, "released");
  EXPECT_EQ(s->validation.total.tensors, 962);
  EXPECT_EQ(s->validation.total.bytes, 4279780);
  EXPECT_EQ(s->memory.n_experts, 80);
  EXPECT_EQ(s->memory.experts_that_fit, 80);
  EXPECT_EQ(s->memory.cache_per_token, 106);  // (64/2 + 64/16 + 32/2 + 32/32) * (1/2 + 1/2 + 1)
  const auto json = Json::parse(summary_json(*s));
  ASSERT_TRUE(json);
  EXPECT_EQ(json->find("valid")->as_bool(), true);
  EXPECT_EQ(json->find("bytes")->as_int(), 4279780);
  EXPECT_NE(summary_table(*s).find("962"), std::string::npos);
  InspectOptions config;
  config.path = dir / "config.json";
  const auto from_config = summarise_config(config);
  ASSERT_TRUE(from_config) << from_config.error().message;
  EXPECT_EQ(from_config->validation.total.bytes, 4279780);
  EXPECT_EQ(from_config->validation.total.tensors, 962);
}

struct Damage {
  std::string_view file, from, to;
  std::vector<std::string> words;  // of the first problem
};

TEST(Inspect, NamesWhatDoesNotFit) {
  const std::string_view one = "model-00001-of-00003.safetensors", index = "model.safetensors.index.json",
                         config = "config.json";
  const Damage cases[] = {
      {one,
       R"("layers.3.attn.wq_b.weight":{"dtype":"F8_E4M3","shape":[256,64])",
       R"("layers.3.attn.wq_b.weight":{"dtype":"F8_E4M3","shape":[64,256])",
       {"layers.3.attn.wq_b.weight", "[64, 256]", "[256, 64]"}},
      {one,
       R"("layers.3.attn_norm.weight":{"dtype":"BF16")",
       R"("layers.3.attn_norm.weight":{"dtype":"F16" )",
       {"layers.3.attn_norm.weight", "F16", "BF16"}},
      {config,
       R"("num_hidden_layers": 10)",
       R"("num_hidden_layers": 11)",
       {"there is no tensor", "layers.10.attn_norm.weight"}},
      {config,
       R"("n_routed_experts": 8)",
       R"("n_routed_experts": 9)",
       {"layers.0.ffn.gate.weight", "[8, 128]", "[9, 128]"}},
      {config, R"("n_routed_experts": 8)", R"("n_routed_experts": 7)", {"layers.0.ffn.gate.weight"}},
      {index, "model-00002-of-00003", "model-00004-of-00003", {"model-00004-of-00003.safetensors", "missing"}},
  };
  for (const Damage& damage : cases) {
    TempDir dir;
    ASSERT_TRUE(make_stand_in(dir, "--tiny"));
    edit(dir / damage.file, damage.from, damage.to);
    const auto s = summary_of(dir.path());
    if (!s) {
      EXPECT_TRUE(fails_with(s, damage.words));
      continue;
    }
    ASSERT_FALSE(s->validation.ok()) << damage.to;
    const Status first = Error{Errc::bad_file, s->validation.problems.front()};
    EXPECT_TRUE(fails_with(first, damage.words)) << damage.to;
  }
}

TEST(Inspect, MissingAndUnknownTensors) {
  TempDir dir;
  ASSERT_TRUE(make_stand_in(dir, "--tiny"));
  for (const std::string_view file : {"model-00001-of-00003.safetensors", "model.safetensors.index.json"})
    edit(dir / file, "layers.3.attn.kv_norm.weight", "layers.3.attn.kv_morn.weight");
  const auto s = summary_of(dir.path());
  ASSERT_TRUE(s) << s.error().message;
  ASSERT_EQ(s->validation.n_problems, 2);
  EXPECT_NE(s->validation.problems[0].find("no tensor 'layers.3.attn.kv_norm.weight'"), std::string::npos);
  EXPECT_NE(s->validation.problems[1].find("layers.3.attn.kv_morn.weight"), std::string::npos);
}

TEST(Inspect, ExitCodes) {
  TempDir dir;
  ASSERT_TRUE(make_stand_in(dir, "--tiny"));
  InspectOptions options;
  options.json = true;
  options.path = dir.path().string();
  testing::internal::CaptureStdout();
  EXPECT_EQ(inspect(options), 0);
  EXPECT_TRUE(Json::parse(testing::internal::GetCapturedStdout()));
  options.path = dir / "nothing";
  testing::internal::CaptureStderr();
  EXPECT_EQ(inspect(options), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("nothing"), std::string::npos);
}

// The released shape: 48 shards, 96,085 tensors, 510,286,023,000 bytes in holes. Needs a file system with sparse
// files.
TEST(Inspect, TheReleasedStandInWithinThreeSeconds) {
  TempDir dir;
  if (!make_stand_in(dir, "")) GTEST_SKIP() << "this file system does not take sparse files of 100 GB";
  InspectOptions options;
  options.path = dir.path().string();
  const std::clock_t start =
      std::clock();  // CPU time: the reading is single-threaded, and a busy machine is no failure
  const auto s = summary_of(dir.path());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_TRUE(s->validation.ok()) << s->validation.problems.front();
  EXPECT_EQ(s->validation.total.tensors, 96085);
  EXPECT_EQ(s->validation.total.parameters, 763205315794);
  EXPECT_EQ(s->validation.total.bytes, 510286023000);
  EXPECT_EQ(s->memory.cache_per_token, 890);
  EXPECT_EQ(s->memory.n_experts, 15360);
  EXPECT_EQ(s->memory.one_expert, 18800640);
  EXPECT_LE(seconds, 3 * kTimeFactor);
}

}  // namespace
}  // namespace gannet::cli
