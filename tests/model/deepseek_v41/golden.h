// The goldens of tests/golden/deepseek_v41: a tiny checkpoint in the released format, and what the model must
// answer.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "files/safetensors.h"
#include "model/deepseek_v41/config.h"
#include "model/deepseek_v41/model.h"
#include "runner.h"
#include "weights/checkpoint.h"

namespace gannet::deepseek_v41::test {

inline std::filesystem::path golden_folder(const std::string& name) {
  return std::filesystem::path(GANNET_SOURCE_DIR) / "tests/golden/deepseek_v41" / name;
}

// Tensors of one safetensors file, by value.
class Tensors {
 public:
  explicit Tensors(const std::filesystem::path& path) : file_(std::move(files::SafeTensors::open(path).value())) {}
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  std::vector<float> floats(const std::string& name) const {
    const files::TensorInfo& t = at(name);
    std::vector<float> out;
    if (t.type == files::StorageType::bf16) {
      for (const bf16 x : raw<bf16>(t)) out.push_back(to_f32(x));
      return out;
    }
    EXPECT_EQ(t.type, files::StorageType::f32) << name;
    return raw<float>(t);
  }
  std::vector<int32_t> ints(const std::string& name) const {
    EXPECT_EQ(at(name).type, files::StorageType::i32) << name;
    return raw<int32_t>(at(name));
  }
  std::vector<int64_t> longs(const std::string& name) const {
    EXPECT_EQ(at(name).type, files::StorageType::i64) << name;
    return raw<int64_t>(at(name));
  }

 private:
  const files::TensorInfo& at(const std::string& name) const {
    const files::TensorInfo* t = file_.find(name);
    GANNET_CHECK(t != nullptr, std::string_view(name));
    return *t;
  }
  template <class T>
  static std::vector<T> raw(const files::TensorInfo& t) {
    std::vector<T> out(t.bytes.size() / sizeof(T));
    std::memcpy(out.data(), t.bytes.data(), t.bytes.size());
    return out;
  }
  files::SafeTensors file_;
};

// One golden folder: checkpoint, config, answers.
struct Golden {
  weights::Checkpoint checkpoint;
  Config config;
  Tensors answers;

  static Golden open(const std::string& name) {
    auto checkpoint = weights::Checkpoint::open(golden_folder(name));
    GANNET_CHECK(checkpoint.has_value(), std::string_view(checkpoint.error().message));
    auto config = config_from_json(*checkpoint->config(), name);
    GANNET_CHECK(config.has_value(), std::string_view(config.error().message));
    return {std::move(*checkpoint), std::move(*config), Tensors(golden_folder(name) / "golden.safetensors")};
  }

  std::unique_ptr<DeepseekV41> model(Numerics numerics, bool trim = true, const std::string& isa = "") const {
    Options options;
    options.numerics = numerics;
    options.trim_decoder = trim;
    options.n_threads = 2;
    auto model = DeepseekV41::load(config, checkpoint, answers.ints("token_map"), options, this_machine(isa));
    GANNET_CHECK(model.has_value(), std::string_view(model.error().message));
    return std::move(*model);
  }

  Text prompt(const std::string& name) const {
    Text text;
    text.tokens = answers.ints(name + ".ids");
    if (answers.has(name + ".is_image")) {
      for (const int32_t flag : answers.ints(name + ".is_image")) text.is_image.push_back(flag != 0);
      text.embeds = answers.floats(name + ".image_embeddings");
    }
    return text;
  }
};

}  // namespace gannet::deepseek_v41::test
