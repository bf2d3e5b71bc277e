// A model whose cache holds the token ids themselves and whose logits are a hash of every row read back through the
// block table. Any mistake in paging, positions or scheduling changes its text.
#pragma once

#include <cstring>

#include "model/model.h"

namespace gannet::test {

inline uint32_t toy_hash(uint32_t hash, int32_t token) { return (hash ^ static_cast<uint32_t>(token)) * 16777619u; }
constexpr uint32_t kToyHash = 2166136261u;

// Logit of token v after a prefix with this hash.
inline float toy_logit(uint32_t hash, int32_t v) {
  return static_cast<float>(toy_hash(hash, v + 1000) >> 20) / 256.0f;
}

class ToyModel : public Model {
 public:
  explicit ToyModel(int32_t vocab = 11, int32_t block_tokens = 4) {
    info_.family = "toy";
    info_.vocab = vocab;
    info_.max_context = 1 << 20;
    spec_.block_tokens = block_tokens;
    spec_.planes = {{"ids", 1, 1, RowFormat::i32}};
  }
  const ModelInfo& info() const override { return info_; }
  const kv::KvSpec& kv_spec() const override { return spec_; }
  int64_t workspace_bytes(int32_t, int32_t, int32_t) const override { return 4096; }

  void forward(const Step& step, kv::KvStore& store, View logits, Exec&) override {
    rows_run += step.n_rows;
    const PagedRows plane = store.plane(0, step.block_table, step.max_blocks);
    const auto cell = [&](int32_t seq, int32_t pos) {
      const int32_t block = plane.block_table[seq * plane.max_blocks + pos / plane.rows_per_block];
      GANNET_CHECK(block >= 0, "position {} has no block", pos);
      return plane.base + block * plane.block_bytes + plane.codes_offset + pos % plane.rows_per_block * 4;
    };
    for (int32_t r = 0; r < step.n_rows; ++r)
      std::memcpy(cell(step.row_seq[r], step.row_pos[r]), &step.row_token[r], 4);
    for (int32_t i = 0; i < step.n_logit_rows; ++i) {
      const int32_t r = step.logit_rows[i];
      uint32_t hash = kToyHash;
      for (int32_t pos = 0; pos <= step.row_pos[r]; ++pos) {
        int32_t token = 0;
        std::memcpy(&token, cell(step.row_seq[r], pos), 4);
        hash = toy_hash(hash, token);
      }
      for (int32_t v = 0; v < info_.vocab; ++v) logits.row(i).as<float>()[v] = toy_logit(hash, v);
    }
  }

  int64_t rows_run = 0;

 private:
  ModelInfo info_;
  kv::KvSpec spec_;
};

// Greedy text after `tokens` by plain recursion.
inline std::vector<int32_t> toy_greedy(std::vector<int32_t> tokens, int32_t n, int32_t vocab = 11) {
  std::vector<int32_t> text;
  for (int32_t i = 0; i < n; ++i) {
    uint32_t hash = kToyHash;
    for (const int32_t token : tokens) hash = toy_hash(hash, token);
    int32_t best = 0;
    for (int32_t v = 1; v < vocab; ++v)
      if (toy_logit(hash, v) > toy_logit(hash, best)) best = v;
    text.push_back(best);
    tokens.push_back(best);
  }
  return text;
}

}  // namespace gannet::test
