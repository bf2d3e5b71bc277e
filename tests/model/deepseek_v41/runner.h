// Runs steps of a V4.1 model by hand: pieces of any sequences, over blocks in random order that hold NaN until
// written.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "model/deepseek_v41/model.h"

namespace gannet::deepseek_v41::test {

// The tokens of one sequence, with image positions and their embeddings.
struct Text {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> is_image;  // empty: none
  std::vector<float> embeds;      // f32 [image positions, C], in order
  int32_t size() const { return static_cast<int32_t>(tokens.size()); }
};

// The next rows of one sequence.
struct Piece {
  int32_t seq = 0;
  const Text* text = nullptr;
  int32_t first_pos = 0, n = 0;
  int32_t end = 0;       // Step::seq_end
  int32_t n_logits = 0;  // of the last rows of this piece
};

class Runner {
 public:
  Runner(DeepseekV41& model, int32_t n_seqs, int32_t max_tokens, int32_t max_rows, int n_threads, uint32_t seed)
      : model_(model),
        blocks_per_seq_((max_tokens + model.kv_spec().block_tokens - 1) / model.kv_spec().block_tokens),
        store_(std::move(*kv::KvStore::create(model.kv_spec(), n_seqs * blocks_per_seq_ + 2, n_seqs))),
        arena_(model.workspace_bytes(max_rows, max_rows, max_tokens)),
        pool_(n_threads, false) {
    std::vector<int32_t> order(static_cast<size_t>(n_seqs * blocks_per_seq_ + 2));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    table_.assign(order.begin(), order.begin() + n_seqs * blocks_per_seq_);
    for (int32_t b = 0; b < store_.n_blocks(); ++b)  // what is read before it is written shows
      std::fill(store_.block_bytes(b).begin(), store_.block_bytes(b).end(), std::byte{0xFF});
  }

  // Logits f32 [sum of n_logits, V]; taps, if asked for, [rows, n_taps * C] in the activation type.
  std::vector<float> run(std::span<const Piece> pieces, View taps = {}) {
    clear();
    Step step;
    for (const Piece& piece : pieces) add(piece, step);
    step.n_rows = static_cast<int32_t>(token_.size());
    step.n_seqs = static_cast<int32_t>(slot_.size());
    step.row_seq = row_seq_.data();
    step.row_pos = pos_.data();
    step.row_token = token_.data();
    step.row_flags = flags_.data();
    if (!embeds_.empty()) {
      step.row_embed = row_embed_.data();
      const int64_t C = model_.info().hidden;
      step.embeds = View(embeds_.data(), DType::f32, {static_cast<int64_t>(embeds_.size()) / C, C});
    }
    step.seq_first_row = first_row_.data();
    step.seq_first_pos = first_pos_.data();
    step.seq_n_rows = n_rows_.data();
    step.seq_end = end_.data();
    step.seq_ring_slot = slot_.data();
    step.block_table = step_table_.data();
    step.max_blocks = blocks_per_seq_;
    step.logit_rows = logit_rows_.data();
    step.n_logit_rows = static_cast<int32_t>(logit_rows_.size());
    const std::vector<int32_t> plan = model_.plan_rows(seq_rows_);
    step.decoder_rows = plan;
    std::vector<float> logits(logit_rows_.size() * static_cast<size_t>(model_.info().vocab), -12345.0f);
    Exec exec{pool_, arena_};
    model_.forward(step, store_, View(logits.data(), DType::f32, {step.n_logit_rows, model_.info().vocab}), taps,
                   exec);
    return logits;
  }

  kv::KvStore& store() { return store_; }
  int64_t peak_bytes() const { return arena_.peak_bytes(); }
  std::span<const int32_t> table(int32_t seq) const {
    return std::span(table_).subspan(static_cast<size_t>(seq * blocks_per_seq_),
                                     static_cast<size_t>(blocks_per_seq_));
  }

 private:
  void clear() {
    for (auto* v : {&row_seq_, &pos_, &token_, &row_embed_, &first_row_, &first_pos_, &n_rows_, &end_, &slot_,
                    &logit_rows_, &step_table_})
      v->clear();
    flags_.clear();
    embeds_.clear();
    seq_rows_.clear();
  }

  void add(const Piece& piece, Step& step) {
    const Text& text = *piece.text;
    const auto C = static_cast<size_t>(model_.info().hidden);
    first_row_.push_back(static_cast<int32_t>(token_.size()));
    first_pos_.push_back(piece.first_pos);
    n_rows_.push_back(piece.n);
    end_.push_back(piece.end);
    seq_rows_.push_back({piece.first_pos, piece.n, piece.end, 1});
    const std::span<const int32_t> blocks = table(piece.seq);
    step_table_.insert(step_table_.end(), blocks.begin(), blocks.end());
    for (int32_t i = 0; i < piece.n; ++i) {
      const auto p = static_cast<size_t>(piece.first_pos + i);
      const bool image = !text.is_image.empty() && text.is_image[p] != 0;
      const bool logits = i >= piece.n - piece.n_logits;
      if (logits) logit_rows_.push_back(static_cast<int32_t>(token_.size()));
      flags_.push_back(
          static_cast<uint8_t>((logits ? row_wants_logits : 0) | (image ? row_is_image : 0) | row_wants_taps));
      row_seq_.push_back(static_cast<int32_t>(slot_.size()));
      pos_.push_back(static_cast<int32_t>(p));
      token_.push_back(text.tokens[p]);
      step.max_pos = std::max(step.max_pos, static_cast<int32_t>(p));
      row_embed_.push_back(-1);
      if (!image) continue;
      const auto nth =
          static_cast<size_t>(std::count_if(text.is_image.begin(), text.is_image.begin() + static_cast<int64_t>(p),
                                            [](uint8_t flag) { return flag != 0; }));
      row_embed_.back() = static_cast<int32_t>(embeds_.size() / C);
      embeds_.insert(embeds_.end(), text.embeds.begin() + static_cast<int64_t>(nth * C),
                     text.embeds.begin() + static_cast<int64_t>((nth + 1) * C));
    }
    slot_.push_back(piece.seq);
  }

  DeepseekV41& model_;
  int32_t blocks_per_seq_;
  kv::KvStore store_;
  Arena arena_;
  ThreadPool pool_;
  std::vector<int32_t> table_;
  std::vector<int32_t> row_seq_, pos_, token_, row_embed_, first_row_, first_pos_, n_rows_, end_, slot_,
      logit_rows_, step_table_;
  std::vector<uint8_t> flags_;
  std::vector<float> embeds_;
  std::vector<SeqRows> seq_rows_;
};

}  // namespace gannet::deepseek_v41::test
